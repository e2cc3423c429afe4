// A checkpoint that belongs to another plan or another run is refused, and the message names what differs.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/checkpoint/world.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

struct DifferenceCase {
  std::string what;
  std::function<void(Plan&)> change;
  std::string says;
};

TEST(Checkpoint, WhatDoesNotFitIsNamed) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(2, folder.path());
  ASSERT_TRUE(SaveSmall(plan, 1).ok());
  const DifferenceCase cases[] = {
      {"model", [](Plan& p) { p.model["layers"] = "6"; },
       "checkpoint of another model: model.layers is 2 in the checkpoint, 6 in this run"},
      {"key", [](Plan& p) { p.model["tied"] = "true"; }, "tied is not given in the checkpoint, true in this run"},
      {"order", [](Plan& p) { p.data.order = SampleOrder::Sequential; },
       "data.order is shuffled in the checkpoint, sequential in this run"},
      {"pack", [](Plan& p) { p.data.pack = Pack::BestFit; },
       "data.pack is stream in the checkpoint, best-fit in this run"},
      {"seed", [](Plan& p) { p.data.seed = 3; }, "data.seed is 18446744073709551615 in the checkpoint, 3 in this run"},
      {"batch", [](Plan& p) { p.run.tokens_per_step = 48; },
       "`batch.global`: tokens per step is 24 in the checkpoint, 48 in this run"},
      {"shape", [](Plan& p) { p.parameters[ParameterId{0}].shape = {305}; },
       "model.embed_tokens.weight is [61, 5] in the checkpoint, [305] in this run"},
      {"scalar", [](Plan& p) { p.scalars.Add({.name = "tokens", .role = ScalarRole::Lr}); },
       "the plan needs, and it lacks: scalar lr"},
      {"no scalar", [](Plan& p) { p.scalars[ScalarId{1}].kind = ScalarKind::Flag; },
       "it holds, and the plan has no place for: scalar updates"},
      {"new tensor", [](Plan& p) { p.parameters[ParameterId{1}].name = "renamed"; },
       "it lacks: renamed, renamed.exp_avg, renamed.exp_avg_sq; it holds, and the plan has no place for: "
       "model.layers.0.mlp.up_proj.weight"},
      {"thawed", [](Plan& p) { StateOf(p.sub_vectors[SubVectorId{2}], StateRole::ExpAvg) = ValueId{0}; },
       "`optimizer.frozen` is another; trained here and frozen there: model.norm.weight"},
      {"frozen", [](Plan& p) { StateOf(p.sub_vectors[SubVectorId{0}], StateRole::ExpAvg) = {}; },
       "no place for: model.embed_tokens.weight.exp_avg"},
  };
  for (const DifferenceCase& row : cases) {
    Plan changed = plan;
    row.change(changed);
    const std::string text = LoadSmall(changed, folder / "step-00000001", 1);
    EXPECT_NE(text.find(row.says), std::string::npos) << row.what << ": " << text;
  }
  // Names are for people: a checkpoint knows scalars by their roles.
  Plan renamed = plan;
  std::swap(renamed.scalars[ScalarId{0}].name, renamed.scalars[ScalarId{1}].name);
  EXPECT_EQ(LoadSmall(renamed, folder / "step-00000001", 1), "");
  auto other_data =
      CheckpointReader::Open({.path = folder / "step-00000001", .plan = &plan, .data_fingerprint = "else"});
  ASSERT_FALSE(other_data.ok());
  EXPECT_NE(other_data.error().message.find("in the checkpoint, else in this run"), std::string::npos);
  auto absent = CheckpointReader::Open({.path = folder / "absent", .plan = &plan});
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ExitCode::Checkpoint);
}

/// SmallPlan over a mixture of two sources.
auto MixedPlan(const std::string& folder) -> Plan {
  Plan plan = SmallPlan(1, folder);
  plan.run.steps = 40;
  plan.data.sources = {{.name = "web", .weight = "0.9 - 0.4 * step / steps", .files = {"a.bin"}},
                       {.name = "code", .weight = "0.3", .files = {"b.bin"}}};
  return plan;
}

auto OpenMixed(const Plan& plan, const std::string& path, const std::vector<std::string>& fingerprints) -> std::string {
  auto reader = CheckpointReader::Open(
      {.path = path, .plan = &plan, .data_fingerprint = "all", .source_fingerprints = fingerprints});
  return reader.ok() ? "" : reader.error().message;
}

TEST(Checkpoint, SourcesOfAMixtureAreComparedOneByOne) {
  const TemporaryFolder folder;
  const Plan plan = MixedPlan(folder.path());
  const std::vector<std::string> fingerprints{"1 file, aa", "2 files, bb"};
  OnRanks(plan, [&](RankControl& control) {
    CheckpointWriter writer({.plan = &plan,
                             .control = &control,
                             .plan_hash = SmallPlanHash,
                             .data_fingerprint = "all",
                             .source_fingerprints = fingerprints});
    ASSERT_TRUE(writer.Begin(20, {{"step", 20}, {"updates", 20}}).ok());
    for (const Op& op : plan.section(SectionKind::Save).ops) {
      if (const auto* save = op.As<op::SaveShard>()) {
        writer.AddShard(save->sub_vector, save->role, ReadSliceOf(plan, save->sub_vector, save->role, 0, 1));
      }
    }
    const Status status = writer.Commit();
    ASSERT_TRUE(status.ok()) << status.error().message;
  });
  const std::string path = folder / "step-00000020";
  EXPECT_EQ(OpenMixed(plan, path, fingerprints), "");

  const auto manifest = ManifestFromText(ReadText(path + "/manifest.json"));
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  EXPECT_EQ(manifest->data.sources, (std::vector<ManifestSource>{{"web", "0.9 - 0.4 * step / steps", "1 file, aa"},
                                                                 {"code", "0.3", "2 files, bb"}}));
  EXPECT_EQ(manifest->data.steps, 40);

  const DifferenceCase cases[] = {
      {"weight", [](Plan& p) { p.data.sources[1].weight = "0.4"; },
       "the weight of code is 0.3 in the checkpoint, 0.4 in this run; put"},
      {"two weights",
       [](Plan& p) {
         p.data.sources[0].weight = "1";
         p.data.sources[1].weight = "2";
       },
       "the weight of web is 0.9 - 0.4 * step / steps in the checkpoint, 1 in this run; the weight of code is 0.3 in "
       "the "
       "checkpoint, 2 in this run"},
      {"name", [](Plan& p) { p.data.sources[1].name = "text"; },
       "the weight of text is 0 in the checkpoint, 0.3 in this run; the weight of code is 0.3 in the checkpoint, 0 in "
       "this run"},
      {"order of sources", [](Plan& p) { std::swap(p.data.sources[0], p.data.sources[1]); },
       "what is read is web, code in the checkpoint, code, web in this run"},
      {"seed", [](Plan& p) { p.data.seed = 3; }, "data.seed is 18446744073709551615 in the checkpoint, 3 in this run"},
      {"batch", [](Plan& p) { p.run.tokens_per_step = 48; },
       "`batch.global`: tokens per step is 24 in the checkpoint, 48 in this run"},
      {"steps", [](Plan& p) { p.run.steps = 80; }, "train.steps is 40 in the checkpoint, 80 in this run, and with it"},
  };
  for (const DifferenceCase& row : cases) {
    Plan changed = plan;
    row.change(changed);
    const std::string text = OpenMixed(changed, path, fingerprints);
    EXPECT_NE(text.find(row.says), std::string::npos) << row.what << ": " << text;
  }
  // Another text that gives equal samples.
  Plan respelt = plan;
  respelt.data.sources[1].weight = "if step < 20 then 0.30 else 0.9";
  EXPECT_EQ(OpenMixed(respelt, path, fingerprints), "");
  const std::string other_files = OpenMixed(plan, path, {"1 file, aa", "2 files, cc"});
  EXPECT_NE(other_files.find("the token stream of code is 2 files, bb in the checkpoint, 2 files, cc in this run"),
            std::string::npos)
      << other_files;
  Plan one_stream = plan;
  one_stream.data.sources = {{.name = "", .weight = "", .files = {"a.bin"}}};
  const std::string to_one = OpenMixed(one_stream, path, {});
  EXPECT_NE(to_one.find("what is read is web, code in the checkpoint, one stream in this run"), std::string::npos)
      << to_one;
}

}  // namespace
}  // namespace shardc
