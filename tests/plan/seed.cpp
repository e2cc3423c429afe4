// Plans that begin from a checkpoint: what the verifier and the reader of plan texts hold them to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ops/verify_plan.h"
#include "compiler/plan/text.h"
#include "tests/support/plan_mutator.h"
#include "tests/support/plan_samples.h"

namespace shardc {
namespace {

using testing::Contains;
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

TEST(SeedPlan, WrongPlansAreRejected) {
  const std::string text = PrintPlan(SeedPlan());
  const std::string load = LineWith(text, {"load_parameter", "parameter=p1 "}) + "\n";
  const std::string generate = LineWith(text, {" initialize "}) + "\n";
  const std::string norm = LineWith(text, {"  seed_tensor model.norm.weight"}) + "\n";
  const std::string head = LineWith(text, {"  seed_tensor lm_head.weight"}) + "\n";
  struct Case {
    std::string what;
    Edits edits;
    std::string label;
  };
  const std::vector<Case> cases{
      {"a parameter that is not loaded", {{load, ""}}, "init-missing"},
      {"a parameter that is loaded twice", {{load, load + load}}, "init-twice"},
      {"a parameter that is loaded and generated",
       {{load, load + Edited(load, {{"load_parameter", "initialize"}})}},
       "init-loaded"},
      {"a parameter that is generated though its rule says loaded",
       {{load, Edited(load, {{"load_parameter", "initialize"}})}},
       "init-loaded"},
      {"a parameter that is loaded though its rule is a formula",
       {{generate, Edited(generate, {{"initialize", "load_parameter"}})}},
       "load_parameter-c3"},
      {"a load under a predicate",
       {{load, Edited(load, {{"parameter=p1 ", "parameter=p1 when=@step "}})}},
       "init-place"},
      {"a tensor that the seed does not have", {{norm, ""}}, "there is no tensor `model.norm.weight` in the seed"},
      {"a tensor of another shape", {{norm, Edited(norm, {{"[8]", "[9]"}})}}, "init-formula"},
      {"a tensor of a type that parameters have not", {{norm, Edited(norm, {{"f32", "f64"}})}}, "seed-tensor"},
      {"a tensor twice", {{norm, norm + norm}}, "seed-order"},
      {"a tensor out of order", {{norm, ""}, {head, norm + head}}, "seed-order"},
      {"a load into another sub-vector",
       {{load, Edited(load, {{"sub_vector=v1", "sub_vector=v0"}})}},
       "load_parameter-c2"},
  };
  for (const Case& test : cases) {
    const auto plan = ParsePlan(Edited(text, test.edits));
    ASSERT_TRUE(plan.ok()) << test.what << ": " << plan.error().message;
    EXPECT_THAT(VerifyPlan(*plan), Contains(HasSubstr(test.label))) << test.what;
  }
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
