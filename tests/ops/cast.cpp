#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "tests/support/kernel_fixture.h"

namespace shardc {

/// The bits of bf16 by the definition of the type: of the two numbers with the sign of x between whose magnitudes that
/// of x lies, the nearer one, and of two that are equally near the one whose bits are even. In f64, where differences
/// and halves of f32 numbers are exact.
static auto NearestBits(float x) -> uint16_t {
  const auto below = static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
  const auto number = [](uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits << 16)); };
  const double low = std::abs(number(below));
  // What would follow the greatest finite number if exponents continued decides where infinity begins.
  const double high = (below & 0x7FFF) == 0x7F7F ? 0x1p128 : std::abs(number(uint32_t{below} + 1));
  const double magnitude = std::abs(static_cast<double>(x));
  const double middle = low + (high - low) / 2;
  const bool up = magnitude > middle || (magnitude == middle && below % 2 == 1);
  return static_cast<uint16_t>(below + (up ? 1 : 0));
}

static auto CastBits(const Backend& backend, const std::vector<uint32_t>& words) -> std::vector<uint16_t> {
  KernelFixture fixture(backend);
  const Dims shape{static_cast<int64_t>(words.size())};
  const ValueId x = fixture.Add(DType::F32, shape);
  std::ranges::copy(words, fixture.At<uint32_t>(x).begin());
  const ValueId y = fixture.Add(DType::BF16, shape);
  fixture.Run(op::Cast{.x = x, .y = y});
  return {fixture.At<uint16_t>(y).begin(), fixture.At<uint16_t>(y).end()};
}

static auto IsNan(uint16_t bits) -> bool { return (bits & 0x7FFF) > 0x7F80; }

TEST(Cast, EveryBf16IsExactInF32AndComesBack) {
  ForBackends([](const Backend& backend) {
    KernelFixture fixture(backend);
    const ValueId x = fixture.Add(DType::BF16, {65536});
    const std::span<uint16_t> bits = fixture.At<uint16_t>(x);
    std::iota(bits.begin(), bits.end(), uint16_t{0});
    const ValueId wide = fixture.Add(DType::F32, {65536});
    const ValueId back = fixture.Add(DType::BF16, {65536});
    fixture.Run(op::Cast{.x = x, .y = wide});
    fixture.Run(op::Cast{.x = wide, .y = back});
    for (uint32_t i = 0; i < 65536; ++i) {
      const uint16_t returned = fixture.At<uint16_t>(back)[i];
      if (IsNan(bits[i])) {
        ASSERT_TRUE(std::isnan(fixture.At<float>(wide)[i])) << i;
        ASSERT_TRUE(IsNan(returned)) << i;
      } else {
        ASSERT_EQ(fixture.At<uint32_t>(wide)[i], i << 16);
        ASSERT_EQ(returned, i);
      }
    }
  });
}

TEST(Cast, RoundsToNearestTiesToEven) {
  // All upper halves with the lower halves at and about the ends and the tie, and one that runs through the rest. An
  // odd number of words, so that no vector width divides it.
  std::vector<uint32_t> words;
  for (uint32_t upper = 0; upper < 65536; ++upper) {
    for (const uint32_t lower : {0U, 1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU, (upper * 40503U) & 0xFFFFU}) {
      if ((upper & 0x7FFF) < 0x7F80) {
        words.push_back(upper << 16 | lower);
      }
    }
  }
  words.resize(words.size() - 11);
  ForBackends([&](const Backend& backend) {
    const std::vector<uint16_t> actual = CastBits(backend, words);
    for (size_t i = 0; i < words.size(); ++i) {
      ASSERT_EQ(actual[i], NearestBits(std::bit_cast<float>(words[i]))) << fmt::format("{:08x}", words[i]);
    }
  });
}

TEST(Cast, KeepsInfinityNanAndSigns) {
  ForBackends([](const Backend& backend) {
    const auto bits = CastBits(backend, {0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFF80FFFF, 0x7FFFFFFF,
                                         0x80000000, 0x00000001, 0x80018000, 0x7F7FFFFF});
    EXPECT_EQ(bits[0], 0x7F80);
    EXPECT_EQ(bits[1], 0xFF80);
    // A NaN whose payload lies in the lower half must not become an infinity, nor one of all ones a number.
    for (const size_t i : {2U, 3U, 4U, 5U}) {
      EXPECT_TRUE(IsNan(bits[i])) << i;
    }
    EXPECT_EQ(bits[6], 0x8000);
    EXPECT_EQ(bits[7], 0x0000);
    EXPECT_EQ(bits[8], 0x8002) << "a subnormal at a tie";
    EXPECT_EQ(bits[9], 0x7F80) << "the greatest f32 is nearer to what would follow the greatest bf16";
  });
}

}  // namespace shardc
