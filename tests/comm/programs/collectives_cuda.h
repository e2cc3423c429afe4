// Every collective among ranks that share a GPU, against Fold on the host: equal to the last bit, on several streams
// and over several sets of axes at once, also where streams lag.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tests/control/world.h"

namespace shardc {

struct CollectivesCase {
  ControlBlock::Members members = Threads;
  Mesh mesh;
  /// The streams of the ranks lag at random.
  bool lags = false;
  /// Rounds of collectives that are under way together.
  uint64_t num_rounds = 40;
  /// Most elements of a shard in these rounds, and of a sum in memory that no peer reads.
  int64_t most_elements = 150'001;
  int64_t most_elements_as_it_is = 20'001;
  /// Bytes of the vector of the collectives after the rounds, one for each kind and type.
  int64_t largest_bytes = int64_t{64} << 20;

  auto SharedBytes() const -> int64_t { return std::max(2 * largest_bytes, 64 * most_elements * mesh.num_ranks() * 8); }
};

/// Expects the bits of Fold on all ranks. Requires: the program has parts for GPUs; for members that are processes,
/// this one has not called CUDA.
auto ExpectEqualFold(const CollectivesCase& which) -> void;

}  // namespace shardc
