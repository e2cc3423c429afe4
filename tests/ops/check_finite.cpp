#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "compiler/base/bfloat16.h"
#include "compiler/plan/state_index.h"
#include "tests/ops/update_plan.h"

namespace shardc {

namespace {

constexpr double Inf = std::numeric_limits<double>::infinity();
constexpr double NaN = std::numeric_limits<double>::quiet_NaN();

struct CheckCase {
  int64_t rank = 0;
  /// Of the rank's slice.
  int64_t at = -1;
  double element = 0;
  /// The parameter that is found; 4: none.
  int32_t bad = 4;
};

constexpr CheckCase CheckCases[] = {
    {.rank = 0},
    {.rank = 1},
    {.rank = 0, .at = 0, .element = NaN, .bad = 0},
    {.rank = 0, .at = 99, .element = Inf, .bad = 0},
    {.rank = 0, .at = 100, .element = NaN, .bad = 4},  // padding
    {.rank = 0, .at = 639, .element = -Inf, .bad = 1},
    {.rank = 1, .at = 0, .element = -NaN, .bad = 1},
    {.rank = 1, .at = 128, .element = Inf, .bad = 2},
    {.rank = 1, .at = 639, .element = Inf, .bad = 4},  // padding
    {.rank = 1, .at = 300, .element = 3e38, .bad = 4},
    {.rank = 1, .at = 300, .element = -1e-40, .bad = 4},
};

/// Runs the op on a slice with one such element; what it finds.
auto Check(const Backend& backend, DType dtype, const CheckCase& test, StateRole role, std::optional<int64_t> onto)
    -> int64_t {
  KernelFixture fixture(backend, test.rank);
  const SubVectorId sub_vector = AddUpdatePlan(fixture.mutable_plan());
  auto elements = RandomNumbers(dtype, UpdateSlice, 1);
  if (test.at >= 0) {
    elements[static_cast<size_t>(test.at)] = test.element;
  }
  const ValueId shard = fixture.Floats(dtype, {UpdateSlice}, elements);
  const ValueId before = onto ? fixture.I64({*onto}) : fixture.Add(DType::I64, {1});
  const ValueId bad = onto ? fixture.Over(before) : before;
  fixture.Run(op::CheckFinite{
      .shard = shard, .bad = bad, .bad_onto = onto ? before : ValueId{}, .sub_vector = sub_vector, .role = role});
  return fixture.At<int64_t>(bad)[0];
}

}  // namespace

TEST(CheckFinite, TakesTheOwnedSegmentsOnly) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const CheckCase& test : CheckCases) {
      for (const StateRole role : StateRoles) {
        SCOPED_TRACE(fmt::format("rank {} element {} role {}", test.rank, test.at, ToText(role)));
        const int64_t none = StateIndex(ParameterId{4}, StateRole::Parameter);
        const int64_t found = test.bad == 4 ? none : StateIndex(ParameterId{test.bad}, role);
        EXPECT_EQ(Check(backend, dtype, test, role, std::nullopt), found);
        EXPECT_EQ(Check(backend, dtype, test, role, 5), std::min<int64_t>(found, 5));
        EXPECT_EQ(Check(backend, dtype, test, role, none), found);
      }
    }
  });
}

TEST(CheckFinite, EveryBitPatternOfAnExponent) {
  // All of bf16, which are f32's upper halves; each is alone in a slice of ones.
  KernelFixture fixture;
  const SubVectorId sub_vector = AddUpdatePlan(fixture.mutable_plan());
  const int64_t none = StateIndex(ParameterId{4}, StateRole::Parameter);
  const int64_t own = StateIndex(ParameterId{1}, StateRole::ExpAvg);
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const ValueId shard = fixture.Floats(dtype, {UpdateSlice}, std::vector<double>(UpdateSlice, 1.0));
    const ValueId bad = fixture.Add(DType::I64, {1});
    const Kernel kernel = fixture.BindWithScratch(op::CheckFinite{
        .shard = shard, .bad = bad, .bad_onto = {}, .sub_vector = sub_vector, .role = StateRole::ExpAvg});
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const float value = std::bit_cast<float>(bits << 16U);
      if (dtype == DType::F32) {
        fixture.At<float>(shard)[140] = value;
      } else {
        fixture.At<BFloat16>(shard)[140].bits = static_cast<uint16_t>(bits);
      }
      ASSERT_TRUE(kernel(Moment{}).ok());
      ASSERT_EQ(fixture.At<int64_t>(bad)[0], std::isfinite(value) ? none : own) << ToText(dtype) << " " << bits;
    }
  }
}

TEST(CheckFinite, NumbersOfTensorsGoThereAndBack) {
  int64_t next = 0;
  for (int32_t parameter = 0; parameter < 5; ++parameter) {
    for (const StateRole role : StateRoles) {
      EXPECT_EQ(StateIndex(ParameterId{parameter}, role), next);
      EXPECT_EQ(StateAt(next++), std::pair(ParameterId{parameter}, role));
    }
  }
}

}  // namespace shardc
