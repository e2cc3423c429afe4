#include "runtime/init/philox.h"

#include <gtest/gtest.h>

namespace shardc {

// Source: Random123 1.14, tests/kat_vectors, rows "philox4x32 10".
static_assert(Philox4x32({0, 0, 0, 0}, {0, 0}) == PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, EveryInputBitChangesAboutHalfTheOutput) {
  const PhiloxCounter base = Philox4x32({1, 2, 3, 4}, {5, 6});
  for (size_t bit = 0; bit < 192; ++bit) {
    PhiloxCounter counter{1, 2, 3, 4};
    PhiloxKey key{5, 6};
    (bit < 128 ? counter[bit / 32] : key[bit / 32 - 4]) ^= 1U << bit % 32;
    const PhiloxCounter other = Philox4x32(counter, key);
    int changed = 0;
    for (size_t i = 0; i < 4; ++i) {
      changed += __builtin_popcount(base[i] ^ other[i]);
    }
    // 64 of 128, six standard deviations.
    EXPECT_NEAR(changed, 64, 34) << bit;
  }
}

}  // namespace shardc
