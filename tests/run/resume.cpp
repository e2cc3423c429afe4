// The same recipe run again: what is there already, what is cut back, what is kept, and other meshes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/repository.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Resume, FinishedRunIsLeftAsItIs) {
  const Training training;
  ASSERT_EQ(training.Run().status, 0);
  const auto before = ContentsOf(training / "run/checkpoints");
  const std::string metrics = ReadText(training / "run/metrics.jsonl");
  const Outcome again = training.Run();
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.err, HasSubstr("run tiny: complete, 40 of 40 steps\n"));
  EXPECT_EQ(ContentsOf(training / "run/checkpoints"), before);
  EXPECT_EQ(ReadText(training / "run/metrics.jsonl"), metrics);
}

// A checkpoint of version 2, saved by the last program that wrote it, is continued and exported; what is saved next is
// of today's version.
TEST(Resume, VersionTwoIsContinued) {
  const Training training({"model.layers=1", "model.hidden=8", "model.ffn=16", "model.vocab=128", "train.eval_every=0",
                           "start.run_id=version-2", "optimizer.lr=0", "train.steps=5"});
  const std::string old = training / "run/checkpoints/step-00000004";
  std::filesystem::create_directories(training / "run/checkpoints");
  std::filesystem::copy(RepositoryPath("tests/checkpoint/version_2/step-00000004"), old);
  const Outcome outcome = training.Run();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(fmt::format("resumed from {} at step 4\n", old)));
  // A learning rate of 0 changes no parameter.
  std::vector<std::string> models;
  for (const int64_t step : {4, 5}) {
    const std::string checkpoint = training / "run/checkpoints/" + CheckpointNameOf(step);
    EXPECT_EQ(std::filesystem::exists(checkpoint + "/rank-00000.blocks"), step == 5);
    const std::string model = training / fmt::format("model-{}", step);
    const Outcome exported = RunProcess({SHARDC_BINARY_DIR "/shardc", "export", checkpoint, "-o", model});
    ASSERT_EQ(exported.status, 0) << exported.err;
    models.push_back(ReadText(model + "/model.safetensors"));
  }
  EXPECT_EQ(models[0], models[1]);
  EXPECT_GT(models[0].size(), 10'000U);
}

TEST(Resume, FewerStepsThanThereAreDone) {
  const Training training({"train.steps=6"});
  ASSERT_EQ(training.Run().status, 0);
  const auto before = ContentsOf(training / "run/checkpoints");
  const Outcome again = training.Run("run", {"train.steps=4"});
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.err,
              HasSubstr("run tiny: its checkpoint is of step 6, and train.steps is 4: nothing is left to do\n"));
  EXPECT_EQ(ContentsOf(training / "run/checkpoints"), before);
}

TEST(Resume, MetricsAreCutBackToTheRestoredStep) {
  const Training training;
  ASSERT_EQ(training.Run("whole").status, 0);
  std::filesystem::copy(training / "whole", training / "run", std::filesystem::copy_options::recursive);
  // As if the last save had not come to be, and the last line had been cut by a power loss.
  std::filesystem::remove_all(training / "run/checkpoints/step-00000040");
  WriteText(training / "run/metrics.jsonl", ReadText(training / "run/metrics.jsonl") + R"({"step":41,"lo)");
  const Outcome again = training.Run();
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr(fmt::format("run tiny: resumed from {}/checkpoints/step-00000020 at step 20\n",
                                               training / "run")));
  ExpectSameRun(training / "run", training / "whole");
}

TEST(Resume, LongerRunGoesOnFromTheEndOfTheShorter) {
  const Training training;
  ASSERT_EQ(training.Run("whole").status, 0);
  ASSERT_EQ(training.Run("run", {"train.steps=20"}).status, 0);
  const Outcome rest = training.Run();
  ASSERT_EQ(rest.status, 0) << rest.err;
  ExpectSameRun(training / "run", training / "whole");
}

// Parameters kept in bf16 are saved as such; another type is another state.
TEST(Resume, ParametersKeptInBFloat16) {
  const Training training({"precision.master=bf16"});
  ASSERT_EQ(training.Run("whole").status, 0);
  ASSERT_EQ(training.Run("run", {"train.steps=20"}).status, 0);
  const Outcome wider = training.Run("run", {"precision.master=fp32"});
  EXPECT_EQ(wider.status, 5);
  EXPECT_THAT(
      wider.err,
      HasSubstr("`precision.master`, an override of it, or `precision.frozen` is another: 21 parameters are kept in "
                "bf16 in the checkpoint, in f32 in this run (model.embed_tokens.weight and 20 "
                "more); put it back, or start another run"));
  EXPECT_LT(wider.err.size(), 700U) << wider.err;
  const Outcome rest = training.Run();
  ASSERT_EQ(rest.status, 0) << rest.err;
  ExpectSameRun(training / "run", training / "whole");
  // On another mesh too.
  ASSERT_EQ(training.Run("moved", {"train.steps=20", "mesh.dp=1"}).status, 0);
  const Outcome moved = training.Run("moved", {"mesh.dp=3"});
  EXPECT_EQ(moved.status, 0) << moved.err;
}

TEST(Resume, FrozenParametersAreSavedWithoutMoments) {
  const Training training({"optimizer.frozen=[\"model.embed_tokens.weight\", \"*norm.weight\"]"});
  ASSERT_EQ(training.Run("whole").status, 0);
  ASSERT_EQ(training.Run("run", {"train.steps=20"}).status, 0);
  // Whoever trains them after all would begin with moments that nobody has.
  const Outcome thawed = training.Run("run", {"optimizer.frozen=[]"});
  EXPECT_EQ(thawed.status, 5);
  EXPECT_THAT(thawed.err,
              HasSubstr("`optimizer.frozen` is another; trained here and frozen there: model.embed_tokens.weight"));
  const Outcome rest = training.Run();
  ASSERT_EQ(rest.status, 0) << rest.err;
  ExpectSameRun(training / "run", training / "whole");
}

TEST(Resume, KeepsTheNewestCheckpoints) {
  for (const auto& [keep, names] : std::vector<std::pair<int, std::vector<std::string>>>{
           {1, {"step-00000010"}},
           {3, {"step-00000006", "step-00000008", "step-00000010"}},
           {0, {"step-00000002", "step-00000004", "step-00000006", "step-00000008", "step-00000010"}}}) {
    const Training training({"train.steps=10", "checkpoint.every=2", fmt::format("checkpoint.keep={}", keep)});
    ASSERT_EQ(training.Run().status, 0);
    EXPECT_EQ(CheckpointsOf(training / "run"), names) << "keep = " << keep;
    EXPECT_THAT(UnfinishedSavesOf(training / "run"), IsEmpty());
  }
}

TEST(Resume, KeepsChosenCheckpointsForGood) {
  const Training training({"train.steps=12", "checkpoint.every=2", "checkpoint.keep=1", "checkpoint.keep_every=3",
                           "checkpoint.keep_steps=[4]"});
  // The stop at step 8 is a launch of its own: what was kept stays kept.
  ASSERT_EQ(training.Run("run", {"train.steps=8", "checkpoint.keep_steps=[4]"}).status, 0);
  EXPECT_THAT(CheckpointsOf(training / "run"), ElementsAre("step-00000004", "step-00000006", "step-00000008"));
  ASSERT_EQ(training.Run().status, 0);
  EXPECT_THAT(CheckpointsOf(training / "run"), ElementsAre("step-00000004", "step-00000006", "step-00000012"));
  // What one recipe keeps for good no later one removes.
  ASSERT_EQ(training.Run("run", {"train.steps=16", "checkpoint.keep_every=0", "checkpoint.keep_steps=[14]"}).status, 0);
  EXPECT_THAT(CheckpointsOf(training / "run"),
              ElementsAre("step-00000004", "step-00000006", "step-00000012", "step-00000014", "step-00000016"));
}

TEST(Resume, AnotherRunsCheckpointsAreNotTouched) {
  const Training training({"checkpoint.dir=shared", "checkpoint.keep=1", "train.steps=20"});
  ASSERT_EQ(training.Run("a", {"start.run_id=a"}).status, 0);
  const auto before = ContentsOf(training / "shared");
  // Nothing of its own there, and what is there is not its own: no silent start from scratch.
  const Outcome other = training.Run("b", {"start.run_id=b"});
  EXPECT_EQ(other.status, 5);
  EXPECT_THAT(other.err, HasSubstr("step-00000020: it belongs to run a"));
  EXPECT_THAT(other.err, HasSubstr("set `checkpoint.dir` to another folder"));
  EXPECT_EQ(ContentsOf(training / "shared"), before);
}

TEST(Resume, FollowsALinkToACheckpoint) {
  const Training training({"train.steps=20"});
  ASSERT_EQ(training.Run().status, 0);
  const std::string newest = training / "run/checkpoints/step-00000020";
  std::filesystem::rename(newest, training / "elsewhere");
  std::filesystem::create_directory_symlink(training / "elsewhere", newest);
  const Outcome rest = training.Run("run", {"train.steps=22"});
  EXPECT_EQ(rest.status, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("step-00000020 at step 20\n"));
}

// The message ends with what to type.
TEST(Resume, RefusalOffersAnotherRun) {
  const Training training({"train.steps=2", "train.eval_every=0"});
  ASSERT_EQ(training.Run().status, 0);
  WriteBin(training / "other.bin", EasyTokens(5000));
  for (const std::string set : {"batch.global=8", "model.seq=16", "optimizer.name=sgd", "data.tokens=[\"other.bin\"]",
                                "precision.master=bf16"}) {
    SCOPED_TRACE(set);
    const Outcome refused = training.Run("run", {set});
    EXPECT_EQ(refused.status, 5) << refused.err;
    const bool goes_on = set != "optimizer.name=sgd";
    const std::string before =
        fmt::format("or start another run from {}: ",
                    goes_on ? "this checkpoint, which keeps its moments" : "these parameters, with moments of 0");
    const size_t at = refused.err.find(before);
    ASSERT_NE(at, std::string::npos) << refused.err;
    std::string options = refused.err.substr(at + before.size());
    options.resize(options.find('\n'));
    std::vector<std::string> command{"/bin/sh", "-c", "\"$@\" " + options, "sh"};
    for (const std::string& word : training.Command("run", {"--set", set})) {
      command.push_back(word);
    }
    const Outcome started = RunProcess(command);
    EXPECT_EQ(started.status, 0) << options << started.err;
    EXPECT_THAT(started.err, HasSubstr("/run/checkpoints/step-00000002"));
    EXPECT_EQ(started.err.find("moments of 2 updates go on") != std::string::npos, goes_on) << started.err;
    EXPECT_TRUE(std::filesystem::exists(training / "run-2/checkpoints/step-00000002"));
    std::filesystem::remove_all(training / "run-2");
  }
}

TEST(Resume, AnotherMeshContinuesTheSameRun) {
  const Training training;
  ASSERT_EQ(training.Run("whole").status, 0);
  const Metrics whole = ReadMetrics(training / "whole");
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{{2, 1}, {1, 3}, {3, 2}, {4, 3}}) {
    const std::string run = fmt::format("from{}to{}", from, to);
    ASSERT_EQ(training.Run(run, {fmt::format("mesh.dp={}", from), "train.steps=20"}).status, 0);
    const Outcome rest = training.Run(run, {fmt::format("mesh.dp={}", to)});
    ASSERT_EQ(rest.status, 0) << rest.err;
    EXPECT_THAT(rest.err, HasSubstr("at step 20\n"));
    const Metrics metrics = ReadMetrics(training / run);
    ASSERT_EQ(metrics.steps.size(), 40U);
    for (const size_t i : {20U, 39U}) {
      EXPECT_NEAR(metrics.steps[i].loss, whole.steps[i].loss, 1e-3 * whole.steps[i].loss) << run << " step " << i + 1;
    }
  }
}

TEST(Resume, CheckpointHasTheSameLossOnEveryMesh) {
  const Training training({"train.steps=20"});
  ASSERT_EQ(training.Run().status, 0);
  const double loss = ReadMetrics(training / "run").evals.at(0).second;
  for (const Sets& mesh : std::vector<Sets>{{"mesh.dp=1"},
                                            {"mesh.dp=3"},
                                            {"mesh.dp=4"},
                                            {"mesh.dp=1", "mesh.tp=2"},
                                            {"mesh.dp=1", "mesh.replicate=2"},
                                            {"mesh.dp=2", "mesh.tp=2"}}) {
    std::vector<std::string> arguments{"--checkpoint", training / "run/checkpoints/step-00000020", "--format", "json"};
    for (const std::string& set : mesh) {
      arguments.insert(arguments.end(), {"--set", set});
    }
    const Outcome outcome = RunProcess(training.Command("eval", arguments));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NEAR(nlohmann::json::parse(outcome.out).at("eval_loss").get<double>(), loss, 1e-6 * loss)
        << fmt::format("{}", fmt::join(mesh, " "));
  }
}

}  // namespace
}  // namespace shardc
