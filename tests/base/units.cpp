// Quantities: how they print, add and round.

#include <gtest/gtest.h>

#include <string_view>
#include <type_traits>

#include "compiler/base/units.h"

namespace shardc {
namespace {

struct FormatCase {
  int64_t value;
  std::string_view memory;
  std::string_view wire;
  std::string_view flops;
};

constexpr FormatCase Cases[] = {
    {0, "0 B", "0 B", "0 FLOP"},
    {17, "17 B", "17 B", "17 FLOP"},
    {999, "999 B", "999 B", "999 FLOP"},
    {1000, "1000 B", "1.00 kB", "1.00 kFLOP"},
    {1024, "1.00 KiB", "1.02 kB", "1.02 kFLOP"},
    {12'288, "12.0 KiB", "12.3 kB", "12.3 kFLOP"},
    {1'610'612'736, "1.50 GiB", "1.61 GB", "1.61 GFLOP"},
    {1'500'000'000, "1.40 GiB", "1.50 GB", "1.50 GFLOP"},
    {3'210'000'000'000, "2.92 TiB", "3.21 TB", "3.21 TFLOP"},
    {4'000'000'000'000'000'000, "3637979 TiB", "4000000 TB", "4.00 EFLOP"},
};

TEST(Units, Format) {
  for (const FormatCase& row : Cases) {
    EXPECT_EQ(FormatMemory({row.value}), row.memory);
    EXPECT_EQ(FormatWire({row.value}), row.wire);
    EXPECT_EQ(FormatFlops(Flops{row.value}), row.flops);
  }
}

TEST(Units, Arithmetic) {
  static_assert(!std::is_convertible_v<Bytes, Flops>);
  EXPECT_EQ(Bytes{6} + Bytes{4}, Bytes{10});
  EXPECT_EQ(Bytes{6} - Bytes{4}, Bytes{2});
  EXPECT_EQ(Bytes{6} * 4, Bytes{24});
  EXPECT_EQ(Bytes{6} / 4, Bytes{1});
  EXPECT_LT(Bytes{6}, Bytes{7});
  Seconds elapsed{0.5};
  elapsed += Seconds{0.25};
  elapsed -= Seconds{0.5};
  EXPECT_EQ(elapsed, Seconds{0.25});
}

TEST(Units, Rounding) {
  EXPECT_EQ(RoundUp(0, 128), 0);
  EXPECT_EQ(RoundUp(1, 128), 128);
  EXPECT_EQ(RoundUp(128, 128), 128);
  EXPECT_EQ(RoundUp(129, 128), 256);
  EXPECT_EQ(CeilDiv(0, 4), 0);
  EXPECT_EQ(CeilDiv(8, 4), 2);
  EXPECT_EQ(CeilDiv(9, 4), 3);
}

}  // namespace
}  // namespace shardc
