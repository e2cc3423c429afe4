// One rank killed: the job ends within seconds, names it, leaves no process running, and the next launch continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Seconds Longest{10};

auto ExpectNamed(const Outcome& outcome, size_t rank) -> void {
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(fmt::format("error: rank {} was killed by signal 9 (SIGKILL)", rank)));
  EXPECT_TRUE(outcome.all_gone);
}

TEST(RankDeath, AtAnyMoment) {
  constexpr size_t NumRanks = 3;
  const Training training({"mesh.dp=3", "train.steps=4000", "train.eval_every=30", "checkpoint.every=10"});
  std::mt19937 generator(30);
  int64_t num_at_op = 0;
  for (int i = 0; i < 20; ++i) {
    Process process(training.RunCommand());
    const auto ranks = process.AwaitChildren(NumRanks);
    ASSERT_EQ(ranks.size(), NumRanks) << process.err();
    // From before the first op to some way into the run.
    Sleep(static_cast<int>(generator() % 150));
    const size_t victim = generator() % NumRanks;
    kill(ranks[victim], SIGKILL);
    const Outcome outcome = process.Wait(Longest);
    ExpectNamed(outcome, victim);
    num_at_op += outcome.err.find("last seen at op") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(num_at_op, 1) << "no rank was killed in a step";
  const int64_t reached = ReadMetrics(training / "run").last_step();
  const std::string steps = fmt::format("train.steps={}", reached + 20);
  const Outcome last = training.Run("run", {steps});
  ASSERT_EQ(last.status, 0) << last.err;
  ASSERT_EQ(training.Run("whole", {steps}).status, 0);
  ExpectSameRun(training / "run", training / "whole");
}

// Its group over one axis waits for it, and they are waited for over the other.
TEST(RankDeath, EachRankOfTwoAxes) {
  const Training training(
      {"mesh.dp=2", "mesh.tp=2", "train.steps=100000", "train.eval_every=0", "checkpoint.every=10"});
  for (size_t victim = 0; victim < 4; ++victim) {
    Process process(training.RunCommand());
    const auto ranks = process.AwaitChildren(4);
    ASSERT_EQ(ranks.size(), 4U) << process.err();
    const int64_t begun = ReadMetrics(training / "run").last_step();
    ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= begun + 12; }))
        << process.err();
    kill(ranks[victim], SIGKILL);
    const Outcome outcome = process.Wait(Longest);
    ExpectNamed(outcome, victim);
    EXPECT_LT(outcome.waited.value, 3);
    EXPECT_THAT(outcome.err,
                testing::ContainsRegex("last seen at op [0-9]+ of step [0-9]+ \\([a-z_]+ (of layer [01] )?in "
                                       "section [a-z]+; from (recipe line|--set|the default of) "));
  }
  const std::string steps = fmt::format("train.steps={}", ReadMetrics(training / "run").last_step() + 5);
  const Outcome last = training.Run("run", {steps});
  ASSERT_EQ(last.status, 0) << last.err;
  EXPECT_THAT(last.err, HasSubstr("resumed from"));
  ASSERT_EQ(training.Run("whole", {steps}).status, 0);
  ExpectSameRun(training / "run", training / "whole");
}

// A stopped rank arrives at no collective, so the others wait in one.
TEST(RankDeath, InACollective) {
  const Training training({"train.steps=100000", "train.eval_every=0", "checkpoint.every=0"});
  enum class Case { WaitedFor, WaitingThenOtherGoesOn, WaitingWhileOtherStaysStopped };
  for (const Case which : {Case::WaitedFor, Case::WaitingThenOtherGoesOn, Case::WaitingWhileOtherStaysStopped}) {
    for (const size_t stopped : {0U, 1U}) {
      if (which == Case::WaitingWhileOtherStaysStopped && stopped == 1) {
        continue;
      }
      const std::string run = fmt::format("run{}{}", static_cast<int>(which), stopped);
      Process process(training.RunCommand(run));
      const auto ranks = process.AwaitChildren(2);
      ASSERT_EQ(ranks.size(), 2U) << process.err();
      ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / run).last_step() >= 3; })) << process.err();
      kill(ranks[stopped], SIGSTOP);
      Sleep(100);
      const size_t victim = which == Case::WaitedFor ? stopped : 1 - stopped;
      kill(ranks[victim], SIGKILL);
      if (which == Case::WaitingThenOtherGoesOn) {
        Sleep(100);
        kill(ranks[stopped], SIGCONT);
      }
      const Outcome outcome = process.Wait(Longest);
      ExpectNamed(outcome, victim);
      EXPECT_THAT(outcome.err, HasSubstr("last seen at op"));
      const bool stays = which == Case::WaitingWhileOtherStaysStopped;
      // A rank that does not go on is killed after the grace.
      EXPECT_LT(outcome.waited.value, stays ? 3 + 4 : 3);
      const std::string late = fmt::format("warning: rank {} has not ended 3 s after the failure", stopped);
      EXPECT_EQ(outcome.err.find(late) != std::string::npos, stays) << outcome.err;
      if (stays) {
        EXPECT_THAT(outcome.err, Not(HasSubstr(fmt::format("rank {} was killed", stopped))));
      }
    }
  }
}

TEST(RankDeath, WhileTheOthersLoad) {
  const Training training;
  Process process(training.RunCommand());
  const auto ranks = process.AwaitChildren(2);
  ASSERT_EQ(ranks.size(), 2U) << process.err();
  kill(ranks[1], SIGKILL);
  ExpectNamed(process.Wait(Longest), 1);
  EXPECT_EQ(training.Run().status, 0);
}

TEST(RankDeath, SlowRankIsWaitedFor) {
  const Training training({"train.steps=200", "train.eval_every=0"});
  Process process(training.RunCommand());
  const auto ranks = process.AwaitChildren(2);
  ASSERT_EQ(ranks.size(), 2U) << process.err();
  ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= 5; })) << process.err();
  kill(ranks[0], SIGSTOP);
  Sleep(1000);
  EXPECT_TRUE(process.is_running());
  kill(ranks[0], SIGCONT);
  EXPECT_EQ(process.Wait().status, 0);
  ASSERT_EQ(training.Run("whole").status, 0);
  ExpectSameRun(training / "run", training / "whole");
}

TEST(RankDeath, ATimeoutIsMoreThanNothingAndEnds) {
  for (const char* seconds : {"nan", "inf", "0", "-1", "1e10", "1e308", "soon"}) {
    const Outcome outcome = RunProcess({SHARDC_BINARY_DIR "/shardc-run", "any.plan", "--timeout", seconds});
    EXPECT_EQ(outcome.status, 2) << seconds;
    EXPECT_THAT(outcome.err, HasSubstr(seconds));
    EXPECT_LT(outcome.err.size(), 300U) << seconds;
  }
}

TEST(RankDeath, StoppedRankIsNamedAndNotWaitedForForEver) {
  const Training training({"train.steps=100000", "data.eval_tokens=0", "train.eval_every=0", "checkpoint.every=0"});
  ASSERT_EQ(RunProcess(training.Command("plan", {"-o", training / "tiny.plan"})).status, 0);
  Process process(
      {SHARDC_BINARY_DIR "/shardc-run", training / "tiny.plan", "--run-dir", training / "run", "--timeout", "1"});
  const auto ranks = process.AwaitChildren(2);
  ASSERT_EQ(ranks.size(), 2U) << process.err();
  ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= 3; })) << process.err();
  kill(ranks[1], SIGSTOP);
  constexpr Seconds TimeoutAndMore{1 + 5};
  EXPECT_TRUE(AwaitTrue([&] { return !process.is_running(); }, TimeoutAndMore)) << "rank 1 is ended, too";
  const Outcome outcome = process.Wait(Longest);
  EXPECT_EQ(outcome.status, 6);
  EXPECT_TRUE(outcome.all_gone);
  EXPECT_THAT(outcome.err, HasSubstr("timed out after 1 s (axis dp), waiting for rank 1, last seen at op "));
}

TEST(RankDeath, SuspendedJobGoesOn) {
  Sets sets = SlowSteps();
  sets.insert(sets.end(), {"train.steps=100000", "data.eval_tokens=0", "train.eval_every=0"});
  const Training training(sets);
  ASSERT_EQ(RunProcess(training.Command("plan", {"-o", training / "tiny.plan"})).status, 0);
  constexpr int TimeoutSeconds = 2;
  Process process({SHARDC_BINARY_DIR "/shardc-run", training / "tiny.plan", "--run-dir", training / "run", "--timeout",
                   std::to_string(TimeoutSeconds)});
  const auto ranks = process.AwaitChildren(2);
  ASSERT_EQ(ranks.size(), 2U) << process.err();
  const auto last_step = [&] { return ReadMetrics(training / "run").last_step(); };
  ASSERT_TRUE(process.Await([&] { return last_step() >= 1; })) << process.err();
  // Rank 0 waits for rank 1 when everything stops, for longer than it would wait.
  kill(ranks[1], SIGSTOP);
  Sleep(300);
  process.KillGroup(SIGSTOP);
  Sleep(TimeoutSeconds * 1000 + 500);
  process.KillGroup(SIGCONT);
  const int64_t before = last_step();
  EXPECT_TRUE(process.Await([&] { return last_step() >= before + 2; })) << process.err();
  process.Kill(SIGTERM);
  EXPECT_EQ(process.Wait().status, 75);
}

}  // namespace
}  // namespace shardc
