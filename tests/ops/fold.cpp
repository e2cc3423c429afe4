// The sum over ranks that GPUs compute, emulated: the bits of the host's.
#include "runtime/kernels/cuda/fold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "compiler/base/bfloat16.h"
#include "tests/support/put_element.h"

namespace shardc {
namespace {

using Elements = std::vector<std::byte>;

constexpr std::array Types{ReduceTypes{DType::F32, DType::F32},   ReduceTypes{DType::F32, DType::BF16},
                           ReduceTypes{DType::F64, DType::F64},   ReduceTypes{DType::I64, DType::I64},
                           ReduceTypes{DType::BF16, DType::BF16}, ReduceTypes{DType::BF16, DType::F32}};

auto NumberAt(DType dtype, const std::byte* from) -> double {
  const auto get = [&](auto element) {
    std::memcpy(&element, from, sizeof(element));
    return element;
  };
  return dtype == DType::F32 ? get(0.0F) : dtype == DType::BF16 ? Load(get(BFloat16{})) : get(0.0);
}

/// Returns elements whose sums round differently in another order. Now and then one is -0.
auto RandomElements(DType dtype, int64_t count, std::mt19937_64& random) -> Elements {
  Elements bytes(static_cast<size_t>(count * SizeOf(dtype)));
  std::uniform_real_distribution<double> number(-1, 1);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t kind = random() % 8;
    const double scale = dtype == DType::I64 ? 1e6 : kind < 4 ? 1 : 1e4;
    PutElement(dtype, kind == 7 ? -0.0 : scale * number(random), bytes.data() + i * SizeOf(dtype));
  }
  return bytes;
}

/// Expects the kernel's sum to be that of the host. `skipped`: elements before the first, so that vectors of 16 bytes
/// cannot be read.
auto ExpectSameSum(ReduceTypes types, size_t hosts, size_t per_host, int64_t count, int64_t skipped, bool accumulate,
                   std::mt19937_64& random) -> void {
  SCOPED_TRACE(fmt::format("{} terms of {} in {} over {} x {} ranks, {} skipped, accumulate {}", count,
                           ToText(types.terms), ToText(types.sum), hosts, per_host, skipped, accumulate));
  std::vector<Elements> operands;
  std::vector<const std::byte*> terms;
  for (size_t k = 0; k < hosts * per_host; ++k) {
    operands.push_back(RandomElements(types.terms, count + skipped, random));
  }
  for (const Elements& operand : operands) {
    terms.push_back(operand.data() + skipped * SizeOf(types.terms));
  }
  const Elements before = RandomElements(types.sum, count + skipped + 1, random);
  Elements expected = before;
  Elements found = before;
  const int64_t begin = skipped * SizeOf(types.sum);
  Fold(terms, per_host, expected.data() + begin, count, types, accumulate);
  ASSERT_TRUE(cuda::Fold(nullptr, terms, per_host, found.data() + begin, count, types, accumulate).ok());
  EXPECT_TRUE(found == expected);
  if (types.terms == types.sum) {
    // Over the last term.
    std::byte* const last = operands.back().data() + skipped * SizeOf(types.terms);
    Elements in_place(last, last + count * SizeOf(types.sum));
    std::copy_n(before.data() + begin, accumulate ? std::ssize(in_place) : 0, last);
    expected = before;
    Fold(terms, per_host, expected.data() + begin, count, types, accumulate);
    ASSERT_TRUE(cuda::Fold(nullptr, terms, per_host, last, count, types, accumulate).ok());
    EXPECT_EQ(std::memcmp(last, expected.data() + begin, in_place.size()), 0);
  }
}

TEST(Fold, HasTheBitsOfTheHost) {
  std::mt19937_64 random(1);
  for (const ReduceTypes types : Types) {
    for (const size_t hosts : {1U, 2U, 3U}) {
      for (const size_t per_host : {1U, 2U, 4U, 9U}) {
        for (const bool accumulate : {false, true}) {
          ExpectSameSum(types, hosts, per_host, 1, 0, accumulate, random);
          ExpectSameSum(types, hosts, per_host, 1027, 0, accumulate, random);
          ExpectSameSum(types, hosts, per_host, 517, 1, accumulate, random);
        }
      }
    }
    // More elements than all blocks have threads.
    ExpectSameSum(types, 2, 2, 150'001, 0, true, random);
  }
}

/// Returns the numbers that stand in the place `digit` of all numerals of four digits, one per number.
auto Enumerated(DType dtype, int digit) -> Elements {
  constexpr double Infinity = std::numeric_limits<double>::infinity();
  constexpr std::array Numbers{0.0, -0.0, 1.5, Infinity, -Infinity, std::numeric_limits<double>::quiet_NaN()};
  constexpr auto Base = static_cast<int64_t>(Numbers.size());
  constexpr int64_t Count = Base * Base * Base * Base;
  Elements bytes(static_cast<size_t>(Count * SizeOf(dtype)));
  int64_t place = 1;
  for (int i = 0; i < digit; ++i) {
    place *= Base;
  }
  for (int64_t i = 0; i < Count; ++i) {
    PutElement(dtype, Numbers[static_cast<size_t>(i / place % Base)], bytes.data() + i * SizeOf(dtype));
  }
  return bytes;
}

TEST(Fold, KeepsZerosInfinitiesAndNaN) {
  for (const ReduceTypes types : Types) {
    if (types.terms == DType::I64) {
      continue;
    }
    const std::array operands{Enumerated(types.terms, 0), Enumerated(types.terms, 1), Enumerated(types.terms, 2)};
    const Elements before = Enumerated(types.sum, 3);
    const auto count = std::ssize(before) / SizeOf(types.sum);
    for (const size_t num_terms : {1U, 2U, 3U}) {
      for (const size_t per_host : {size_t{1}, num_terms}) {
        for (const bool accumulate : {false, true}) {
          std::vector<const std::byte*> terms;
          for (size_t k = 0; k < num_terms; ++k) {
            terms.push_back(operands[k].data());
          }
          Elements expected = before;
          Elements found = before;
          Fold(terms, per_host, expected.data(), count, types, accumulate);
          ASSERT_TRUE(cuda::Fold(nullptr, terms, per_host, found.data(), count, types, accumulate).ok());
          for (int64_t i = 0; i < count; ++i) {
            const std::byte* const of_host = expected.data() + i * SizeOf(types.sum);
            const std::byte* const of_gpu = found.data() + i * SizeOf(types.sum);
            const double number = NumberAt(types.sum, of_gpu);
            // Other bits of a NaN may differ.
            ASSERT_TRUE(std::isnan(number) ? std::isnan(NumberAt(types.sum, of_host))
                                           : std::memcmp(of_host, of_gpu, static_cast<size_t>(SizeOf(types.sum))) == 0)
                << i << " of " << num_terms << " terms of " << ToText(types.terms) << " in " << ToText(types.sum);
          }
        }
      }
    }
  }
}

TEST(Fold, RefusesMoreTermsThanItTakes) {
  float element = 1;
  const std::vector<const std::byte*> terms(cuda::MostTerms + 1, reinterpret_cast<const std::byte*>(&element));
  const Status status = cuda::Fold(nullptr, terms, terms.size(), reinterpret_cast<std::byte*>(&element), 1, {}, false);
  EXPECT_EQ(status.error().message, "a sum over 257 ranks on GPUs; 256 at most");
}

}  // namespace
}  // namespace shardc
