// Lines `recipe` that somebody changed: the verifier refuses the plan, or reports, searches and comparisons work on it.
#include <gtest/gtest.h>

#include "compiler/fit/offers.h"
#include "compiler/plan/header.h"
#include "compiler/report/compare.h"
#include "compiler/verify/verify.h"
#include "tests/support/plan_samples.h"

namespace shardc {
namespace {

/// Values that no key takes, or some keys alone, and parts of values.
constexpr auto Hostile = std::to_array<std::string_view>({"",
                                                          "\"",
                                                          "\"\"",
                                                          "x",
                                                          "\"x\"",
                                                          "\"size:\"",
                                                          "-1",
                                                          "0",
                                                          "1e308",
                                                          "nan",
                                                          "12345678901234567890123",
                                                          "9223372036854775807",
                                                          "true",
                                                          "[",
                                                          "[]",
                                                          "[1]",
                                                          "[\"x\"]",
                                                          "[{ }]",
                                                          "[{ match = 1 }]",
                                                          "[{ match = \"*\" }]",
                                                          "{ seed = \"x\" }",
                                                          "{ seed = 1",
                                                          "\"\\u0000\"",
                                                          "\"\\",
                                                          "[[[[[[\"x\"]]]]]]"});

/// Calls all that reads the keys of a plan.
auto Read(const Plan& plan, const Plan& other) -> void {
  const Report report = Explain(plan);
  EXPECT_FALSE(RenderReportText(report).empty());
  EXPECT_FALSE(RenderReportJson(report).empty());
  EXPECT_FALSE(RenderReportHtml(report).empty());
  EXPECT_FALSE(KnobsOf(plan, 8).empty());
  EXPECT_EQ(KnobOf(OffersOf(plan), AsItIs(OffersOf(plan))).sets.size(), 0U);
  EXPECT_FALSE(RenderComparisonText(Compare(report, Explain(other))).empty());
}

TEST(AlteredLines, AreRefusedOrReported) {
  const std::vector<std::vector<std::string>> samples{
      {"model.layers=1", "run.machine=h100-sxm", "train.on_spike=skip", "data.scan=1 MiB", "batch.accumulate=3"},
      {"model.layers=1", "run.device=cuda", "shard.prefetch_forward=2", "shard.prefetch_backward=2",
       "shard.gather_ring=3", "recompute.policy=selective", "recompute.save=[\"attention\"]", "train.max_minutes=5"},
      {"model.layers=1", "optimizer.name=sgd", "optimizer.momentum=0.9", "mesh.dp=4", "shard.reshard_size=2",
       "batch.global=24", "shard.unit=[{match = [\"lm_head.weight\"]}]", "init.scheme=gpt2", "init.rule=[]",
       "precision.override=[{match = \"embed\", reduce = \"bf16\"}]", "optimizer.group=[{match = \"*norm*\"}]"}};
  int num_changed = 0;
  int num_accepted = 0;
  for (const auto& sets : samples) {
    const Plan plan = CompileSample(sets);
    for (size_t i = 0; i < plan.recipe.size(); ++i) {
      // Each value meets each third key of each sample.
      for (size_t v = i % 3; v < Hostile.size(); v += 3) {
        const std::string_view value = Hostile[v];
        SCOPED_TRACE(fmt::format("{} is {}", plan.recipe[i].key, value));
        Plan changed = plan;
        changed.recipe[i].value = value;
        ++num_changed;
        if (VerifyPlan(changed).empty()) {
          ++num_accepted;
          Read(changed, plan);
        }
        // A caller that asks no verifier finds the key unset.
        KeysOf(changed);
      }
    }
  }
  EXPECT_GT(num_changed, 1000);
  EXPECT_GT(num_accepted, 10);
}

TEST(AlteredLines, MayComeFromOtherVersions) {
  Plan plan = CompileSample();
  plan.recipe.push_back({.key = "shard.of_later", .value = "1"});
  EXPECT_FALSE(VerifyPlan(plan).empty());
  Read(plan, CompileSample());
}

}  // namespace
}  // namespace shardc
