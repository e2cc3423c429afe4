// The engine of ranks on the GPUs of one host: peers reach each other's memory in place, by CUDA IPC between processes
// and by plain pointers between threads. Copies are made by copy engines, sums by a kernel of this project, in the
// order of the CPU's.
//
// A meeting takes its turn in the queue: the rank records an event there, meets the others on the host, and has the
// queue wait for the events of the others. So each wait is enqueued after what it waits for, and no GPU waits for a
// host. Events are used two in turn, for each queue and group: a rank comes to the next meeting after it has enqueued
// the waits of this one, so nobody records an event that another has still to wait for.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/cuda/peer_memory.h"
#include "runtime/comm/engine.h"
#include "runtime/comm/nccl/nccl_group.h"
#include "runtime/device/cuda/cuda_device.h"

namespace shardc {

class CudaEngine final : public Engine {
 public:
  /// Makes the engine of a rank. Called by all ranks of the host together. `remote`: null if nothing is exchanged with
  /// other hosts. Requires: `device` outlives the engine. Errors: Environment if this rank cannot reach the memory of
  /// another one.
  static auto Create(CudaDevice& device, std::shared_ptr<HostMember> member, std::shared_ptr<NcclGroups> remote)
      -> ErrorOr<std::unique_ptr<Engine>>;
  CudaEngine(const CudaEngine&) = delete;
  auto operator=(const CudaEngine&) -> CudaEngine& = delete;
  /// Leaves events and memory as they are, unless the engine is closed: peers may still use them.
  ~CudaEngine() override;

  auto Meet(Queue& queue, const Group& group) -> Status override;
  auto Copy(Queue& queue, std::byte* to, const std::byte* from, int64_t bytes) -> Status override;
  auto CopyRows(Queue& queue, std::byte* to, int64_t stride, const std::byte* from, int64_t bytes, int64_t rows)
      -> Status override;
  auto Clear(Queue& queue, std::byte* to, int64_t bytes) -> Status override;
  auto Fold(Queue& queue, const std::vector<const std::byte*>& terms, size_t per_host, std::byte* out,
            int64_t num_elements, ReduceTypes types, bool accumulate) -> Status override;
  auto Peer(int64_t rank, const CommSpan& span) const -> std::byte* override;
  auto Sum(Queue& queue, const Group& group, std::byte* data, int64_t num_elements, DType dtype, int64_t per_host)
      -> Status override;
  auto Gather(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override;
  auto AllToAll(Queue& queue, AxisSet axes, const std::byte* to_each, int64_t stride, std::byte* from_each,
                int64_t bytes) -> Status override;
  auto SumSlots(Queue& queue, AxisSet axes, std::byte* slots, int64_t count) -> Status override;
  auto SumOverMembers(Queue& queue, AxisSet axes, std::byte* data, int64_t num_elements, DType dtype)
      -> Status override;
  auto Close() -> Status override;

 private:
  /// The meetings of one group on one stream.
  struct Meetings {
    PeerMemory::EventPair own;
    /// In group order, this rank left out.
    std::vector<PeerMemory::EventPair> of_peers;
    size_t turn = 0;
    /// Turn of the slots of sums.
    size_t slot = 0;
  };

  CudaEngine(CudaDevice& device, std::shared_ptr<HostMember> member, std::shared_ptr<NcclGroups> remote)
      : Engine(std::move(member)), device_(device), remote_(std::move(remote)), peers_(&device) {}
  auto MeetingsOf(const Queue& queue, const Group& group) -> Meetings&;
  auto Remote(AxisSet axes) const -> NcclGroup&;
  /// Returns where a rank of this host has what lies at `own` here.
  auto AtPeer(int64_t rank, std::byte* own) const -> std::byte*;

  CudaDevice& device_;
  bool is_closed_ = false;
  std::shared_ptr<NcclGroups> remote_;
  PeerMemory peers_;
  /// By stream, then by Group::axes_index; without events where no op of the plan needs them.
  std::array<std::array<Meetings, NumAxisSets>, NumStreams> meetings_;
  /// Places of the terms of a sum; as long as there are ranks from the start, so that a step allocates nothing.
  std::vector<const std::byte*> slots_;
};

/// Makes the engine of a rank; see FamilyParts::make_engine.
auto MakeCudaEngine(RankDevice& device, const std::shared_ptr<HostMember>& member,
                    const std::shared_ptr<NcclGroups>& remote) -> ErrorOr<std::unique_ptr<Engine>>;

}  // namespace shardc
