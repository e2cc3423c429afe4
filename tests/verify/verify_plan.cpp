// What the verifier says, and where it says nothing. What it rejects is in tests/verify/cases, as text.
#include "compiler/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/plan/text.h"
#include "tests/support/plan_lines.h"
#include "tests/support/plan_samples.h"
#include "tests/verify/broken_plan.h"

namespace shardc {
namespace {

/// What is found in the sample with these keys of the recipe, after the changes.
auto FindingsAfter(const std::string& plan, std::vector<std::string> changes) -> std::vector<std::string> {
  const BrokenPlanResult result = JudgeBrokenPlan(
      {.place = {}, .what = {}, .plan = plan, .op = {}, .after = {}, .changes = std::move(changes), .expect = {}});
  EXPECT_EQ(result.error, "");
  return result.findings;
}

TEST(VerifyPlan, ShowsTheOpTheFactsAndTheUnit) {
  EXPECT_THAT(FindingsAfter("", {"drop step all_gather"}),
              testing::Contains(testing::MatchesRegex("step op [0-9]+ `compute embedding tokens=.* hold nothing: unit "
                                                      "embed is not gathered \\[read-undefined\\]")));
}

TEST(VerifyPlan, OpsOnASliceNeedItsSegmentsAndNotItsPadding) {
  // One rank and one microbatch: nothing sums the gradients, and nothing clears the padding between them.
  const char* one = "mesh.dp=1 batch.global=2";
  ASSERT_EQ(VerifyPlan(CompileSample({"mesh.dp=1", "batch.global=2"})), std::vector<std::string>{});
  EXPECT_THAT(
      FindingsAfter(one, {"drop step release buffer=(step matmul transpose_a=true .scratch .buffer)",
                          "drop step matmul transpose_a=true"}),
      testing::Contains(testing::AllOf(testing::HasSubstr("sum_squares"), testing::EndsWith("[read-undefined]"))));
}

TEST(VerifyPlan, APlanWhosePassesRanInAnotherOrderIsNotRunnable) {
  const Plan valid = CompileSample();
  EXPECT_EQ(VerifyRunnable(valid), std::vector<std::string>{});
  const auto expect_missing = [](const Plan& plan) {
    const std::vector<std::string> findings = VerifyRunnable(plan);
    ASSERT_EQ(findings.size(), 1);
    EXPECT_EQ(LabelOf(findings[0]), "pass-missing");
  };
  Plan plan = valid;
  plan.passes.pop_back();
  expect_missing(plan);
  plan = valid;
  std::swap(plan.passes[0], plan.passes[1]);
  expect_missing(plan);
  plan = valid;
  plan.passes.push_back(PassKind::Build);
  expect_missing(plan);
}

TEST(VerifyPlan, AcceptsSamplesInAnotherOrder) {
  // Each rank reads a range of the samples of the step, at the offset of each microbatch.
  EXPECT_EQ(FindingsAfter("", {"set data load_tokens to sample=6*dp+2*repeat+12*step"}), std::vector<std::string>{});
}

/// A gather whose operands are two views of one buffer.
auto LabelsOfGatherInPlace(std::string_view slot, std::string_view whole) -> std::set<std::string> {
  const auto plan = ParsePlan(fmt::format(R"(plan version=2 mesh=dp:4 device=cpu kernels=fused
passes schedule
buffer $whole shared-transient bytes=4096 category=gathered
value slot = $whole[{}] f32[128] {{dp: shard(0)}}
value whole = $whole[{}] f32[512]
section step {{
  compute fill out=slot value=1
  compute all_gather shard=slot full=whole axes=dp
  compute release buffer=$whole
}}
)",
                                          slot, whole));
  CHECK(plan.ok(), "{}", plan.error().message);
  std::set<std::string> labels;
  for (const std::string& finding : VerifyPlan(*plan)) {
    labels.insert(LabelOf(finding));
  }
  return labels;
}

TEST(VerifyPlan, RefusesAGatherInPlace) {
  // Each rank would read its peers' slots at its own.
  EXPECT_EQ(LabelsOfGatherInPlace("512*dp", "0"), std::set<std::string>{"all_gather-c5"});
  EXPECT_EQ(LabelsOfGatherInPlace("1536", "1536-512*dp"), std::set<std::string>{"offset-differs"});
  EXPECT_EQ(LabelsOfGatherInPlace("0", "0"), std::set<std::string>{"operand-overlap"});
  EXPECT_EQ(LabelsOfGatherInPlace("0", "2048"), std::set<std::string>{});
}

TEST(VerifyPlan, AcceptsTermsThatBeginElsewhereOnAllRanksAlike) {
  const auto plan = ParsePlan(R"(plan version=2 mesh=dp:4 device=cpu kernels=fused
passes schedule
buffer $whole shared-transient bytes=8192 category=activations
buffer $part transient bytes=512 category=activations
value full = $whole[2048] f32[512]
value shard = $part[0] f32[128]
section step {
  compute fill out=full value=1
  compute reduce_scatter full=full shard=shard axes=dp
  compute release buffer=$whole
  compute release buffer=$part
}
)");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(VerifyPlan(*plan), std::vector<std::string>{});
}

}  // namespace
}  // namespace shardc
