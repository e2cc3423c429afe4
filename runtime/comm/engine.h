// The parts of collectives on one kind of device: how a rank meets the ranks of its host, copies and sums what they
// have in memory, and exchanges with ranks of other hosts. LayeredCommunicator makes the collectives of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/mesh/mesh.h"
#include "compiler/plan/types.h"
#include "runtime/comm/communicator.h"
#include "runtime/control/fold.h"
#include "runtime/control/host_member.h"

namespace shardc {

/// Every call takes its turn on `queue`: an engine of the CPU has done it on return. All memory is of the device.
/// Errors: those of Communicator.
class Engine {
 public:
  using Group = HostMember::Group;

  explicit Engine(std::shared_ptr<HostMember> member) : member_(std::move(member)) {}
  virtual ~Engine() = default;

  auto member() const -> HostMember& { return *member_; }

  /// Orders all that the ranks of the group, on this host, did before it against what this rank does after it.
  virtual auto Meet(Queue& queue, const Group& group) -> Status = 0;
  virtual auto Copy(Queue& queue, std::byte* to, const std::byte* from, int64_t bytes) -> Status = 0;
  /// Copies `rows` rows of `bytes`, which lie one after another, to rows that begin `stride` bytes apart.
  virtual auto CopyRows(Queue& queue, std::byte* to, int64_t stride, const std::byte* from, int64_t bytes, int64_t rows)
      -> Status = 0;
  virtual auto Clear(Queue& queue, std::byte* to, int64_t bytes) -> Status = 0;
  /// Sums as shardc::Fold does.
  virtual auto Fold(Queue& queue, const std::vector<const std::byte*>& terms, size_t per_host, std::byte* out,
                    int64_t num_elements, ReduceTypes types, bool accumulate) -> Status = 0;
  /// Returns where a rank of this host has what `span` is here. Requires: it is this rank, or `span` lies in an arena
  /// that they share.
  virtual auto Peer(int64_t rank, const CommSpan& span) const -> std::byte* = 0;
  /// Sums as HostMember::Sum does, in memory that no peer reads.
  virtual auto Sum(Queue& queue, const Group& group, std::byte* data, int64_t num_elements, DType dtype,
                   int64_t per_host) -> Status = 0;

  /// Ends as Communicator::Close does.
  virtual auto Close() -> Status { return Success{}; }

  // Between the ranks that have the same number on their hosts: the members of compiler/plan/exchange.h.

  /// Gathers as PeerGroup::AllGather does.
  virtual auto Gather(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status = 0;
  /// Exchanges as PeerGroup::AllToAll does.
  virtual auto AllToAll(Queue& queue, AxisSet axes, const std::byte* to_each, int64_t stride, std::byte* from_each,
                        int64_t bytes) -> Status = 0;

  // Sums over the members by a library, in an order of its own: for plans that leave them to it.

  /// Replaces the slot of this rank, of one for each member, by the sum of the members' slots of its number. Each has
  /// `count` f32. The other slots then hold anything.
  virtual auto SumSlots(Queue& /*queue*/, AxisSet axes, std::byte* /*slots*/, int64_t /*count*/) -> Status {
    CHECK(false, "no library sums over {}", ToText(axes));
  }
  /// Replaces `data` by its sum. Dtypes F32, F64, I64.
  virtual auto SumOverMembers(Queue& /*queue*/, AxisSet axes, std::byte* /*data*/, int64_t /*num_elements*/,
                              DType /*dtype*/) -> Status {
    CHECK(false, "no library sums over {}", ToText(axes));
  }

 private:
  std::shared_ptr<HostMember> member_;
};

}  // namespace shardc
