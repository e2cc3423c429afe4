#include "compiler/data/shuffle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "compiler/base/check.h"

namespace shardc {

auto ShuffledIndex(int64_t index, int64_t n, uint64_t seed, int64_t epoch) -> int64_t {
  CHECK(0 <= index && index < n && n <= int64_t{1} << 62 && epoch >= 0, "index {} of {}, epoch {}", index, n, epoch);
  constexpr uint64_t NumRounds = 8;
  // A network on a handful of bits mixes badly: at least 2 * 4.
  const int half_bits = std::max(4, (static_cast<int>(std::bit_width(static_cast<uint64_t>(n - 1))) + 1) / 2);
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  auto value = static_cast<uint64_t>(index);
  do {
    uint64_t left = value >> half_bits;
    uint64_t right = value & mask;
    for (uint64_t round = 0; round < NumRounds; ++round) {
      const std::array<uint64_t, 3> words{right, round, static_cast<uint64_t>(epoch)};
      const uint64_t hash = XXH3_64bits_withSeed(words.data(), sizeof(words), seed);
      left ^= hash & mask;
      std::swap(left, right);
    }
    value = left << half_bits | right;
  } while (value >= static_cast<uint64_t>(n));
  return static_cast<int64_t>(value);
}

auto DerivedSeed(uint64_t seed, std::string_view name) -> uint64_t {
  return XXH3_64bits_withSeed(name.data(), name.size(), seed);
}

}  // namespace shardc
