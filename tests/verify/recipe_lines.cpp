// Every line `recipe` of a plan: the verifier refuses another value of the key, or the key is one of those of which no
// line and no op of the plan has the value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/ops/verify_plan.h"
#include "tests/support/plan_samples.h"
#include "tests/verify/broken_plan.h"

namespace shardc {
namespace {

/// A value of the same kind, and another one.
auto Another(const std::string& value) -> std::string {
  return value == "true"          ? "false"
         : value == "false"       ? "true"
         : value.starts_with('"') ? "\"another\""
         : value.starts_with('[') ? "[0.25, 0.125]"
                                  : value + "1";
}

/// The keys whose lines may have any value.
auto FreeKeys(const std::vector<std::string>& sets) -> std::set<std::string> {
  const Plan plan = CompileSample(sets);
  EXPECT_EQ(VerifyPlan(plan), std::vector<std::string>{});
  std::set<std::string> free;
  for (size_t i = 0; i < plan.recipe.size(); ++i) {
    Plan changed = plan;
    RecipeEntry& entry = changed.recipe[i];
    entry.value = Another(entry.value);
    const std::vector<std::string> findings = VerifyPlan(changed);
    if (findings.empty()) {
      free.insert(entry.key);
      continue;
    }
    EXPECT_EQ(findings.size(), 1U);
    EXPECT_EQ(LabelOf(findings[0]), "header-recipe");
    EXPECT_THAT(findings[0], testing::StartsWith("the line `recipe " + entry.key + "` has " + entry.value));
  }
  return free;
}

TEST(RecipeLines, AgreeWithThePlan) {
  const std::set<std::string> units{"shard.units", "shard.reshard_after_forward", "shard.gather_into",
                                    "shard.prefetch_forward", "shard.prefetch_backward"};
  std::set<std::string> expected{
      "precision.compute", "precision.master", "precision.residual", "precision.reduce", "loss.chunks",
      "recompute.policy",  "recompute.layers", "init.std",           "init.rule",        "optimizer.weight_decay",
      "optimizer.frozen",  "data.tokens",      "batch.reduce",       "start.first",      "start.restart"};
  expected.insert(units.begin(), units.end());
  EXPECT_EQ(FreeKeys({}), expected);
  // Keys that other settings bring.
  EXPECT_EQ(FreeKeys({"train.on_spike=skip", "run.machine=h100-sxm", "train.max_minutes=5", "start.run_id=tuned",
                      "model.rope_theta=50000", "model.rope_frequency=linear_rope(4)", "data.scan=1 MiB",
                      "run.comm=gloo", "run.device=cpu-portable"}),
            expected);
  expected.insert({"shard.gather_ring", "checkpoint.dir"});
  EXPECT_EQ(FreeKeys({"train.on_nonfinite=skip", "run.peak_flops=1e12", "optimizer.name=sgd", "optimizer.momentum=0.9",
                      "optimizer.nesterov=true", "mesh.dp=4", "shard.reshard_size=2", "shard.gather_ring=2",
                      "batch.global=24", "checkpoint.dir=saves", "optimizer.lr=0.5"}),
            expected);
}

TEST(RecipeLines, MayBeLeftOut) {
  Plan plan = CompileSample();
  plan.recipe.clear();
  EXPECT_EQ(VerifyPlan(plan), std::vector<std::string>{});
}

TEST(RecipeLines, LeaveTheDeviceOfALaunchOpen) {
  Plan plan = CompileSample();
  plan.device = Device::CpuAvx512;
  EXPECT_EQ(VerifyPlan(plan), std::vector<std::string>{});
}

}  // namespace
}  // namespace shardc
