#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops/tolerance.h"
#include "tests/ops/update_plan.h"

namespace shardc {

struct SumCase {
  int64_t rank = 0;
  /// Written into the rank's slice at this element, if not negative.
  int64_t at = -1;
  double element = 0;
  int64_t bad = 4;
};

constexpr double Infinity = std::numeric_limits<double>::infinity();
constexpr SumCase SumCases[] = {
    {.rank = 0},
    {.rank = 1},
    {.rank = 0, .at = 99, .element = Infinity, .bad = 0},
    {.rank = 0, .at = 100, .element = Infinity, .bad = 4},  // padding
    {.rank = 0, .at = 639, .element = -Infinity, .bad = 1},
    {.rank = 1, .at = 0, .element = std::numeric_limits<double>::quiet_NaN(), .bad = 1},
    {.rank = 1, .at = 128, .element = Infinity, .bad = 2},
    {.rank = 1, .at = 300, .element = 3e38, .bad = 4},  // finite, though its square is not in f32
};

TEST(SumSquares, TakesTheOwnedSegmentsOnly) {
  ForBackends([](const Backend& backend) {
    for (const SumCase& test : SumCases) {
      for (const bool adds : {false, true}) {
        SCOPED_TRACE(fmt::format("rank {} element {} onto {}", test.rank, test.at, adds));
        KernelFixture fixture(backend, test.rank);
        const SubVectorId sub_vector = AddUpdatePlan(fixture.mutable_plan());
        auto gradient = RandomNumbers(UpdateSlice, 1);
        if (test.at >= 0) {
          gradient[static_cast<size_t>(test.at)] = test.element;
        }
        double expected = adds ? 2 : 0;
        for (const Segment& segment : fixture.plan().sub_vectors[sub_vector].segments) {
          for (int64_t i = segment.begin; i < segment.end; ++i) {
            if (i / UpdateSlice == test.rank) {
              const auto element =
                  static_cast<double>(static_cast<float>(gradient[static_cast<size_t>(i % UpdateSlice)]));
              expected += element * element;
            }
          }
        }
        const ValueId sum_onto = adds ? fixture.F64({2}) : fixture.Add(DType::F64, {1});
        const ValueId bad_onto = adds ? fixture.I64({3}) : fixture.Add(DType::I64, {1});
        const ValueId sum = fixture.Over(sum_onto);
        const ValueId bad = fixture.Over(bad_onto);
        fixture.Run(op::SumSquares{.gradient = fixture.F32({UpdateSlice}, gradient),
                                   .sum = sum,
                                   .sum_onto = adds ? sum_onto : ValueId{},
                                   .bad = bad,
                                   .bad_onto = adds ? bad_onto : ValueId{},
                                   .sub_vector = sub_vector});
        EXPECT_EQ(fixture.At<int64_t>(bad)[0], adds ? std::min<int64_t>(test.bad, 3) : test.bad);
        if (test.bad == 4) {
          ExpectClose(OpKind::SumSquares, "sum", fixture.At<double>(sum), {expected});
        } else {
          EXPECT_FALSE(std::isfinite(fixture.At<double>(sum)[0]));
        }
      }
    }
  });
}

TEST(SumSquares, TakesManySegments) {
  ForBackends([](const Backend& backend) {
    // In the padding, in none, and in the last segments of the first and of all launches.
    for (const int64_t bad : {int64_t{55}, int64_t{-1}, int64_t{95 * 60 + 50}, ManyParametersLength - 10}) {
      KernelFixture fixture(backend);
      const SubVectorId id = AddManyParameters(fixture.mutable_plan());
      auto gradient = RandomNumbers(ManyParametersLength, 1);
      // One sum of all terms in f64 would be further from the truth than those of the kernels.
      long double expected = 0;
      for (size_t i = 0; i < gradient.size(); ++i) {
        expected +=
            IsOfManyParameters(static_cast<int64_t>(i)) ? static_cast<long double>(gradient[i]) * gradient[i] : 0;
      }
      if (bad >= 0) {
        gradient[static_cast<size_t>(bad)] = Infinity;
      }
      const ValueId sum = fixture.Add(DType::F64, {1});
      const ValueId found = fixture.Add(DType::I64, {1});
      fixture.Run(op::SumSquares{.gradient = fixture.F32({ManyParametersLength}, gradient),
                                 .sum = sum,
                                 .sum_onto = {},
                                 .bad = found,
                                 .bad_onto = {},
                                 .sub_vector = id});
      if (bad >= 0 && IsOfManyParameters(bad)) {
        EXPECT_EQ(fixture.At<int64_t>(found)[0], bad / 60);
      } else {
        EXPECT_EQ(fixture.At<int64_t>(found)[0], ManyParameters);
        ExpectClose(OpKind::SumSquares, "sum", fixture.At<double>(sum), {static_cast<double>(expected)});
      }
    }
  });
}

TEST(SumSquares, WhatIsNotCountedIsStillChecked) {
  ForBackends([](const Backend& backend) {
    KernelFixture fixture(backend);
    const SubVectorId id = AddUpdatePlan(fixture.mutable_plan());
    fixture.mutable_plan().sub_vectors[id].segments[1].counted_in_norm = false;
    std::vector<double> gradient(UpdateSlice, 1.0);
    gradient[200] = Infinity;
    const ValueId sum = fixture.Add(DType::F64, {1});
    const ValueId bad = fixture.Add(DType::I64, {1});
    fixture.Run(op::SumSquares{.gradient = fixture.F32({UpdateSlice}, gradient),
                               .sum = sum,
                               .sum_onto = {},
                               .bad = bad,
                               .bad_onto = {},
                               .sub_vector = id});
    EXPECT_EQ(fixture.At<double>(sum)[0], 100);
    EXPECT_EQ(fixture.At<int64_t>(bad)[0], 1);
  });
}

}  // namespace shardc
