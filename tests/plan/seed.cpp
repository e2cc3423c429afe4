// Plans that begin from a checkpoint: what they load, and what the reader of plan texts holds them to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/text.h"
#include "compiler/verify/verify.h"
#include "tests/support/plan_mutator.h"
#include "tests/support/plan_samples.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// lm_head.weight is generated, of a tensor of the seed; all others are loaded.
auto SeedPlan() -> Plan {
  return CompileSample({"model.hidden=8", "model.heads=2", "model.kv_heads=2", "model.ffn=16", "model.vocab=32",
                        R"(init.rule=[{ match = "lm_head.weight", value = "seed('lm_head.weight') * 2" }])",
                        R"(start.first={ seed = ")" SHARDC_SOURCE_DIR
                        R"(/tests/support/seed/step-00000002", missing = ["lm_head.weight"] })"});
}

TEST(SeedPlan, LoadsWhatTheSeedHasAndGeneratesTheRest) {
  const Plan plan = SeedPlan();
  EXPECT_THAT(VerifyRunnable(plan), IsEmpty());
  int loads = 0;
  std::vector<std::string> generated;
  for (const Op& op : plan.section(SectionKind::Init).ops) {
    loads += op.As<op::LoadParameter>() != nullptr ? 1 : 0;
    if (const auto* initialize = op.As<op::Initialize>()) {
      generated.push_back(plan.parameters[initialize->parameter].name);
    }
  }
  EXPECT_EQ(loads + 1, plan.parameters.size());
  EXPECT_THAT(generated, testing::ElementsAre("lm_head.weight"));
  EXPECT_EQ(plan.seed.run_id, "base");
  EXPECT_EQ(plan.seed.step, 2);
  EXPECT_EQ(static_cast<int32_t>(plan.seed.tensors.size()), plan.parameters.size());
  const auto again = ParsePlan(PrintPlan(plan));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(*again == plan);
  // A plan's identity is the manifest, not where it lies.
  Plan moved = plan;
  moved.seed.path = "elsewhere";
  EXPECT_EQ(PlanHash(moved), PlanHash(plan));
  moved.seed.manifest[0] = moved.seed.manifest[0] == '0' ? '1' : '0';
  EXPECT_NE(PlanHash(moved), PlanHash(plan));
}

TEST(SeedPlan, MutantsAreReadAndJudgedInBoundedTime) {
  const MutantCounts counts = JudgeMutants(PrintPlan(SeedPlan()), 500, 1);
  EXPECT_GT(counts.unread, 100);
  EXPECT_GT(counts.rejected, 50);
}

TEST(SeedPlan, TextsThatAreNoneAreNotRead) {
  const std::string text = PrintPlan(SeedPlan());
  const std::string seed = LineWith(text, {"seed run_id="}) + "\n";
  const std::string manifest = SeedPlan().seed.manifest;
  const auto error = [&](const Edits& edits) {
    const auto plan = ParsePlan(Edited(text, edits));
    return plan.ok() ? "read" : plan.error().message;
  };
  EXPECT_THAT(error({{seed, ""}}), HasSubstr("a seed_tensor before the seed"));
  EXPECT_THAT(error({{seed, seed + seed}}), HasSubstr("second `seed` line"));
  EXPECT_THAT(error({{"manifest=" + manifest, "manifest=\"\""}}),
              HasSubstr("a seed without the digest of its manifest"));
}

}  // namespace
}  // namespace shardc
