// The order of the samples of an epoch: a permutation of 0 ... n-1 computed element by element, without a table.
//
// A Feistel network permutes the smallest square power of two that holds n; numbers that land at or above n are sent
// through it again until they land below (cycle walking), which leaves a permutation of 0 ... n-1. On average fewer
// than four passes, as the square is less than four times n (small n aside). The round function is XXH3-64 keyed by the
// seed.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardc {

/// Returns where sample `index` of an epoch is found.
/// Requires: 0 <= index < n <= 2^62, epoch >= 0. Cost: constant, about 0.2 us.
auto ShuffledIndex(int64_t index, int64_t n, uint64_t seed, int64_t epoch) -> int64_t;

/// Returns a seed of its own for each name. Source: XXH3-64 of the name, keyed by the seed.
auto DerivedSeed(uint64_t seed, std::string_view name) -> uint64_t;

}  // namespace shardc
