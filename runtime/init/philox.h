// Philox4x32-10: a counter-based generator. A block of four random words is a pure function of a 64-bit key and a
// 128-bit counter, so any element of any tensor can be drawn by anyone, in any order. Source: Salmon et al., "Parallel
// Random Numbers: As Easy as 1, 2, 3", SC 2011; known answers of Random123's kat_vectors.
#pragma once

#include <array>
#include <cstdint>

namespace shardc {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr auto Philox4x32(PhiloxCounter counter, PhiloxKey key) -> PhiloxCounter {
  constexpr uint64_t Multiplier0 = 0xD2511F53;
  constexpr uint64_t Multiplier1 = 0xCD9E8D57;
  constexpr uint32_t Weyl0 = 0x9E3779B9;
  constexpr uint32_t Weyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = Multiplier0 * counter[0];
    const uint64_t product1 = Multiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += Weyl0;
    key[1] += Weyl1;
  }
  return counter;
}

}  // namespace shardc
