// One training by the real programs, from recipe to metrics, plan, evaluation and report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler/plan/text.h"
#include "tests/support/plan_samples.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Train, MetricsHaveALineAStep) {
  const Training training;
  const Outcome outcome = training.Run();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.all_gone);
  const Metrics metrics = ReadMetrics(training / "run");
  EXPECT_THAT(metrics.others, IsEmpty());
  ASSERT_EQ(metrics.steps.size(), 40U);
  double first_losses = 0;
  double last_losses = 0;
  for (size_t i = 0; i < metrics.steps.size(); ++i) {
    const StepLine& line = metrics.steps[i];
    EXPECT_EQ(line.step, static_cast<int64_t>(i) + 1);
    EXPECT_GT(line.grad_norm, 0);
    EXPECT_DOUBLE_EQ(line.lr, i < 10 ? 1e-3 * static_cast<double>(i + 1) : 1e-2);
    EXPECT_GT(line.step_ms, 0);
    // 12 sequences of 32 tokens per step.
    EXPECT_NEAR(line.tokens_per_s, 12 * 32 / (line.step_ms / 1e3), line.tokens_per_s * 1e-9);
    first_losses += i < 5 ? line.loss / 5 : 0;
    last_losses += i >= 35 ? line.loss / 5 : 0;
  }
  EXPECT_LT(last_losses, first_losses - 1) << "of 5 steps each";
  ASSERT_EQ(metrics.evals.size(), 2U);
  EXPECT_EQ(metrics.evals[0].first, 20);
  EXPECT_EQ(metrics.evals[1].first, 40);
  EXPECT_LT(metrics.evals[1].second, metrics.evals[0].second);
  EXPECT_THAT(CheckpointsOf(training / "run"), ElementsAre("step-00000020", "step-00000040"));
  EXPECT_THAT(UnfinishedSavesOf(training / "run"), IsEmpty());
}

TEST(Train, FollowsAScheduleOfTheLibrary) {
  const Training training;
  const Outcome outcome = training.Run("run", {"optimizer.lr=\"let peak = 1e-2 in peak * wsd(10, 16, 0.5)\""});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Metrics metrics = ReadMetrics(training / "run");
  ASSERT_EQ(metrics.steps.size(), 40U);
  for (int step = 0; step < 40; ++step) {
    const double factor = step < 10 ? (step + 1) / 10.0 : step < 24 ? 1 : 1 - (step - 24) / 32.0;
    EXPECT_DOUBLE_EQ(metrics.steps[static_cast<size_t>(step)].lr, 1e-2 * factor) << step;
  }
}

TEST(Train, ProgressGoesToStderrAndNothingToStdout) {
  const Training training;
  const Outcome outcome = training.Run("run", {"train.log_every=15"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err,
              ContainsRegex("run tiny: started from scratch, seed 7 .no earlier checkpoint in .*/run/checkpoints.\n"
                            "  [0-9.]+ s to allocate and bind, [0-9.]+ s to initialise, 37024 elements drawn\n"));
  for (const int step : {15, 30, 40}) {
    EXPECT_THAT(outcome.err, HasSubstr(fmt::format("\nstep {}/40  loss ", step)));
  }
  EXPECT_THAT(outcome.err, Not(HasSubstr("\nstep 10/40  loss ")));
  EXPECT_THAT(outcome.err, HasSubstr("\nstep 20/40  validation loss "));
  EXPECT_THAT(outcome.err, HasSubstr(fmt::format("\nstep 40: saved {}/checkpoints/step-00000040\n", training / "run")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("\x1b"))) << "escapes belong on terminals only";
}

TEST(Train, TimeLeftCountsEvaluations) {
  Sets sets = SlowSteps();
  sets.insert(sets.end(), {"train.steps=2", "train.eval_every=2", "train.log_every=1", "data.eval_tokens=0",
                           "data.eval=['held.bin']"});
  const Training training(sets);
  // As many as 80 steps have.
  WriteBin(training / "held.bin", EasyTokens(120'000));
  const Outcome outcome = training.Run();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, ContainsRegex("\nstep 2/2  loss .*  [1-9][0-9ms ]* left\n"));
}

TEST(Train, LogThatCannotBeWrittenDoesNotEndTheRun) {
  const Training training;
  auto command = training.RunCommand();
  const Outcome outcome = RunProcess({"/bin/sh", "-c", R"(trap '' PIPE; exec "$0" "$@" 2>/dev/full)", command[0],
                                      command[1], command[2], command[3], command[4]});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(CheckpointsOf(training / "run"), ElementsAre("step-00000020", "step-00000040"));
}

TEST(Train, ReferenceKernelsGiveTheSameLosses) {
  // Losses fall by more than 1 here; bf16 rounds what f32 does not.
  for (const auto& [compute, tolerance] : {std::pair{"fp32", 1e-4}, std::pair{"bf16", 3e-2}}) {
    const Training training({"train.steps=20", fmt::format("precision.compute={}", compute)});
    ASSERT_EQ(training.Run("default").status, 0);
    const Outcome outcome = training.Run("reference", {"run.kernels=reference"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Metrics expected = ReadMetrics(training / "default");
    const Metrics metrics = ReadMetrics(training / "reference");
    ASSERT_EQ(metrics.steps.size(), 20U);
    ASSERT_EQ(expected.steps.size(), 20U);
    for (size_t i = 0; i < metrics.steps.size(); ++i) {
      EXPECT_NEAR(metrics.steps[i].loss, expected.steps[i].loss, tolerance) << compute << ", step " << i + 1;
    }
  }
}

/// Trains 20 steps with `sets`, then with `more` besides, and expects the same numbers to the bit. What the second run
/// said.
auto ExpectSameNumbers(const Sets& sets, const Sets& more) -> std::string {
  const Training training({"train.steps=20"});
  Sets all = sets;
  all.insert(all.end(), more.begin(), more.end());
  EXPECT_EQ(training.Run("without", sets).status, 0);
  const Outcome outcome = training.Run("with", all);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const Metrics expected = ReadMetrics(training / "without");
  const Metrics metrics = ReadMetrics(training / "with");
  EXPECT_EQ(expected.steps.size(), 20U);
  EXPECT_EQ(metrics.steps.size(), 20U);
  ExpectSameSteps(metrics, expected);
  EXPECT_EQ(metrics.evals, expected.evals);
  return outcome.err;
}

TEST(Train, GatheringIntoMemoryOfTheHostChangesNoBit) {
  for (const Sets& sets : {Sets{"mesh.dp=2"}, Sets{"mesh.dp=3", "precision.compute=bf16", "shard.prefetch_forward=2"},
                           Sets{"mesh.dp=2", "batch.accumulate=3", "shard.prefetch_backward=1"}}) {
    EXPECT_THAT(ExpectSameNumbers(sets, {"shard.gather_into=host"}), HasSubstr("\n  gathered "));
  }
}

TEST(Train, GatheringFromGroupsInBackwardChangesNoBit) {
  for (const Sets& sets :
       {Sets{"mesh.dp=4"}, Sets{"mesh.dp=4", "precision.compute=bf16", "shard.prefetch_backward=1"}}) {
    ExpectSameNumbers(sets, {"shard.reshard_after_forward=true", "shard.reshard_size=2"});
  }
}

// How dp is cut binds no checkpoint.
TEST(Train, GroupsMayChangeAtARestart) {
  const Training training({"checkpoint.every=10", "mesh.dp=4", "shard.reshard_after_forward=true"});
  ASSERT_EQ(training.Run("whole", {"train.steps=20"}).status, 0);
  ASSERT_EQ(training.Run("cut", {"train.steps=10", "shard.reshard_size=2"}).status, 0);
  const Outcome outcome = training.Run("cut", {"train.steps=20"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Metrics expected = ReadMetrics(training / "whole");
  const Metrics metrics = ReadMetrics(training / "cut");
  ASSERT_EQ(expected.steps.size(), 20U);
  ASSERT_EQ(metrics.steps.size(), 20U);
  ExpectSameSteps(metrics, expected);
}

TEST(Train, PlanInTheRunDirectoryRunsAgainBitForBit) {
  const Training training;
  ASSERT_EQ(training.Run("run", {"train.steps=25", "optimizer.clip_norm=0.5"}).status, 0);
  const std::string plan = ReadText(training / "run/attempts/0001/plan.shardc");
  EXPECT_THAT(plan, AllOf(HasSubstr("\nset \"train.steps=25\"\n"), HasSubstr("\nset \"optimizer.clip_norm=0.5\"\n")));
  const Outcome outcome = RunProcess({SHARDC_BINARY_DIR "/shardc", "run", training / "run/attempts/0001/plan.shardc",
                                      "--run-dir", training / "again"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  ExpectSameRun(training / "run", training / "again");
}

TEST(Train, RunTwiceGivesTheSameBits) {
  const Training training;
  ASSERT_EQ(training.Run("a").status, 0);
  ASSERT_EQ(training.Run("b").status, 0);
  ExpectSameRun(training / "a", training / "b");
}

TEST(Train, SetCannotChangeAPlan) {
  const Training training;
  WriteText(training / "a.plan", PrintPlan(training.Compile()));
  const Outcome outcome =
      RunProcess({SHARDC_BINARY_DIR "/shardc", "run", training / "a.plan", "--set", "train.steps=3"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--set acts on a recipe, and"));
}

TEST(Train, PathsOfTheRecipeAreRelativeToItsFolder) {
  const Training training({"train.steps=4", "checkpoint.dir=kept"});
  // From another folder, with the run directory left to the recipe.
  const Outcome outcome = RunProcess(training.Command("run"), {.folder = "/"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(ReadMetrics(training / "runs/tiny").steps.size(), 4U);
  EXPECT_TRUE(std::filesystem::exists(training / "kept/step-00000004/manifest.json"));
  EXPECT_FALSE(std::filesystem::exists(training / "runs/tiny/checkpoints"));

  // The recipe named by a relative path.
  const Training other({"train.steps=4"});
  const Outcome near =
      RunProcess({SHARDC_BINARY_DIR "/shardc", "run", "tiny.toml", "--set", "train.steps=4"}, {.folder = other.path()});
  ASSERT_EQ(near.status, 0) << near.err;
  EXPECT_EQ(ReadMetrics(other / "runs/tiny").steps.size(), 4U);
}

TEST(Train, SavesAndEvaluatesAtTheEndOnlyIfNotToldOtherwise) {
  const Training training({"train.eval_every=0", "checkpoint.every=0", "train.steps=6"});
  ASSERT_EQ(training.Run().status, 0);
  const Metrics metrics = ReadMetrics(training / "run");
  ASSERT_EQ(metrics.evals.size(), 1U);
  EXPECT_EQ(metrics.evals[0].first, 6);
  EXPECT_THAT(CheckpointsOf(training / "run"), ElementsAre("step-00000006"));
}

TEST(Train, EveryMeshTrainsTheSameModel) {
  const Training training({"train.steps=25"});
  std::vector<Metrics> all;
  for (const int dp : {1, 2, 3, 4}) {
    const std::string run = fmt::format("dp{}", dp);
    const Outcome outcome = training.Run(run, {fmt::format("mesh.dp={}", dp)});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    all.push_back(ReadMetrics(training / run));
    ASSERT_EQ(all.back().steps.size(), 25U);
    // The same initial values and the same samples; sums in another order.
    EXPECT_NEAR(all.back().steps[0].loss, all[0].steps[0].loss, 1e-6 * all[0].steps[0].loss) << run;
    EXPECT_NEAR(all.back().steps[24].loss, all[0].steps[24].loss, 1e-3 * all[0].steps[24].loss) << run;
    EXPECT_NEAR(all.back().evals[0].second, all[0].evals[0].second, 1e-3 * all[0].evals[0].second) << run;
  }
}

TEST(Train, OtherWaysToCommunicateAreRefused) {
  const Training training({"train.steps=2"});
  const Outcome recipe = training.Run("run", {"run.comm=threads"});
  EXPECT_EQ(recipe.status, 3);
  EXPECT_THAT(recipe.err, HasSubstr("`comm` is \"threads\"; known: \"auto\", \"shm\", \"gloo\", \"gloo-flat\", "
                                    "\"nccl\", \"nccl-flat\" and \"nccl-ring\" [unknown-choice]"));
  WriteText(training / "threads.plan", Edited(PrintPlan(training.Compile()), {{"comm=shm", "comm=threads"}}));
  const Outcome plan =
      RunProcess({SHARDC_BINARY_DIR "/shardc", "run", training / "threads.plan", "--run-dir", training / "threads"});
  EXPECT_EQ(plan.status, 3);
  EXPECT_THAT(plan.err, HasSubstr("`threads` stands where one of auto, shm, gloo, gloo-flat, nccl, nccl-flat"));
}

TEST(Eval, EqualsTheEvaluationOfTheRun) {
  const Training training;
  ASSERT_EQ(training.Run().status, 0);
  const Metrics metrics = ReadMetrics(training / "run");
  ASSERT_EQ(metrics.evals.size(), 2U);
  const auto before = ContentsOf(training.path());
  for (const auto& [step, loss] : metrics.evals) {
    const Outcome outcome = training.Eval(training / ("run/checkpoints/" + CheckpointNameOf(step)));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    const auto result = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(result.at("step").get<int64_t>(), step);
    EXPECT_EQ(result.at("eval_loss").get<double>(), loss) << "bit for bit, on the same mesh";
  }
  EXPECT_EQ(ContentsOf(training.path()), before) << "an evaluation leaves no files";

  const Outcome text =
      RunProcess(training.Command("eval", {"--checkpoint", training / "run/checkpoints/step-00000040"}));
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.out, fmt::format("step 40: eval loss {:.4f} nats/token\n", metrics.evals[1].second));
  // A checkpoint that is being written, or was replaced, is not one of the run's.
  std::filesystem::copy(training / "run/checkpoints/step-00000040", training / "run/checkpoints/step-00000041.tmp-tiny",
                        std::filesystem::copy_options::recursive);
  const Outcome newest =
      RunProcess(training.Command("eval", {"--set", "checkpoint.dir=" + (training / "run/checkpoints")}));
  EXPECT_EQ(newest.out, text.out) << newest.err;
}

TEST(Eval, ResultThatCannotBeWrittenIsAnError) {
  const Training training({"train.steps=2"});
  ASSERT_EQ(training.Run().status, 0);
  const auto command = training.Command("eval", {"--checkpoint", training / "run/checkpoints/step-00000002"});
  std::vector<std::string> shell{"/bin/sh", "-c", R"(exec "$0" "$@" >/dev/full)"};
  shell.insert(shell.end(), command.begin(), command.end());
  const Outcome outcome = RunProcess(shell);
  EXPECT_EQ(outcome.status, 6);
  EXPECT_THAT(outcome.err, HasSubstr("stdout"));
}

TEST(Eval, NothingHeldOut) {
  const Training training({"data.eval_tokens=0", "train.eval_every=0", "train.steps=2"});
  ASSERT_EQ(training.Run().status, 0);
  EXPECT_THAT(ReadMetrics(training / "run").evals, IsEmpty());
  const Outcome outcome = training.Eval(training / "run/checkpoints/step-00000002");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.err, HasSubstr("use --set 'data.eval=[\"FILE\"]' with a file that the run did not train on"));
}

}  // namespace
}  // namespace shardc
