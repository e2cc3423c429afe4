// Memory of GPUs, and events by which ranks meet, that the ranks of a host show each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/control/host_member.h"
#include "runtime/device/cuda/cuda_device.h"

namespace shardc {

class PeerMemory {
 public:
  using EventPair = std::array<cudaEvent_t, 2>;

  /// Requires: `device` outlives this.
  explicit PeerMemory(const CudaDevice* device) : device_(*device) {}
  PeerMemory(const PeerMemory&) = delete;
  auto operator=(const PeerMemory&) -> PeerMemory& = delete;
  /// Closes what was opened, and destroys the own events, unless the device is lost. Requires: no peer uses them.
  ~PeerMemory();

  /// Closes what was opened.
  auto Close() -> void;

  /// Makes so many pairs of events, and opens memory and events of the other ranks of the host. Called by all of them
  /// together, with one number. Errors: Environment if the driver refuses.
  auto Open(HostMember& member, size_t num_pairs) -> Status;

  // These are of a rank of the host, counted from its first one.

  auto memory(size_t local_rank) const -> std::byte* { return ranks_[local_rank].memory; }
  auto events(size_t local_rank, size_t pair) const -> EventPair { return ranks_[local_rank].pairs[pair]; }

 private:
  struct Rank {
    std::byte* memory = nullptr;
    std::vector<EventPair> pairs;
    /// Memory and events are of another process, which has to keep them until they are closed.
    bool is_opened = false;
  };
  struct Offer;
  struct PairOffer;

  auto MakeOwn(size_t num_pairs) -> Status;
  auto OpenRank(const std::byte* offered, size_t num_pairs, Rank& rank) const -> Status;

  const CudaDevice& device_;
  std::vector<EventPair> own_;
  std::vector<Rank> ranks_;
};

}  // namespace shardc
