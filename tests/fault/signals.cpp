// SIGTERM, SIGUSR1, SIGINT and SIGHUP, to any one process and in any phase: one committed save at the next step
// boundary, exit 75, and the next launch continues from there. Streams that nobody reads, or that are closed, are in
// streams.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

auto Has(const std::string& text, const std::string& part) -> bool { return text.find(part) != std::string::npos; }

/// A stop as it should be: the newest checkpoint is that of the last step, and the log says so.
auto ExpectStoppedAndSaved(const Outcome& outcome, const std::string& run_dir) -> void {
  EXPECT_EQ(outcome.status, 75) << outcome.err;
  EXPECT_TRUE(outcome.all_gone);
  const int64_t step = ReadMetrics(run_dir).last_step();
  EXPECT_GE(step, 1);
  ASSERT_FALSE(CheckpointsOf(run_dir).empty());
  EXPECT_EQ(CheckpointsOf(run_dir).back(), CheckpointNameOf(step));
  EXPECT_TRUE(UnfinishedSavesOf(run_dir).empty());
  EXPECT_THAT(outcome.err,
              HasSubstr(fmt::format("\nstep {}: saved {}/checkpoints/{}\n", step, run_dir, CheckpointNameOf(step))));
  EXPECT_THAT(outcome.err, HasSubstr(fmt::format("\nstep {}: stopped as asked\n", step)));
}

TEST(Signals, ToAnyOneProcessAndOnFromThere) {
  const Training training({"train.steps=600", "train.eval_every=100", "checkpoint.every=100", "model.hidden=64"});
  ASSERT_EQ(training.Run("whole").status, 0);
  const std::string run_dir = training / "run";
  int64_t resumed_at = 0;
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT, SIGHUP}) {
    // The launcher, then each rank.
    for (const int to : {-1, 0, 1}) {
      Process process(training.RunCommand());
      const auto ranks = process.AwaitChildren(2);
      ASSERT_EQ(ranks.size(), 2U) << process.err();
      ASSERT_TRUE(process.Await([&] { return ReadMetrics(run_dir).last_step() >= resumed_at + 5; })) << process.err();
      kill(to < 0 ? process.pid() : ranks[static_cast<size_t>(to)], signal);
      const Outcome outcome = process.Wait(Seconds{10});
      ExpectStoppedAndSaved(outcome, run_dir);
      if (resumed_at > 0) {
        EXPECT_THAT(outcome.err, HasSubstr(fmt::format("/{} at step {}\n", CheckpointNameOf(resumed_at), resumed_at)));
      }
      resumed_at = ReadMetrics(run_dir).last_step();
      ASSERT_LT(resumed_at, 580) << "the run is too short for this machine";
    }
  }
  ASSERT_EQ(training.Run().status, 0);
  ExpectSameRun(run_dir, training / "whole");
}

TEST(Signals, ToTheWholeGroupAsATerminalOrSchedulerSendsIt) {
  const Training training({"train.steps=100000", "train.eval_every=0", "checkpoint.every=0"});
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const int64_t before = ReadMetrics(training / "run").last_step();
    Process process(training.RunCommand());
    ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= before + 5; }))
        << process.err();
    process.KillGroup(signal);
    ExpectStoppedAndSaved(process.Wait(Seconds{10}), training / "run");
  }
}

TEST(Signals, AHangUpThatIsIgnoredAsUnderNohupMeansNothing) {
  const Training training({"train.steps=200", "train.eval_every=0", "checkpoint.every=0"});
  Process process(training.RunCommand(), {.before_exec = [] { std::signal(SIGHUP, SIG_IGN); }});
  ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= 5; })) << process.err();
  process.KillGroup(SIGHUP);
  const Outcome outcome = process.Wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(ReadMetrics(training / "run").last_step(), 200);
}

TEST(Signals, SecondInterruptEndsAtOnce) {
  const Training training({"train.steps=100000", "train.eval_every=0", "checkpoint.every=10"});
  for (const bool to_group : {false, true}) {
    const int64_t before = ReadMetrics(training / "run").last_step();
    Process process(training.RunCommand());
    const auto ranks = process.AwaitChildren(2);
    ASSERT_EQ(ranks.size(), 2U) << process.err();
    ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= before + 15; }));
    // The step boundary is out of reach.
    kill(ranks[1], SIGSTOP);
    Sleep(50);
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(process.is_running());
      if (to_group) {
        process.KillGroup(SIGINT);
      } else {
        process.Kill(SIGINT);
      }
      Sleep(300);
    }
    const Outcome outcome = process.Wait(Seconds{5});
    EXPECT_EQ(outcome.status, 128 + SIGINT) << outcome.err;
    EXPECT_LT(outcome.waited.value, 1);
    EXPECT_TRUE(outcome.all_gone);
    ASSERT_FALSE(CheckpointsOf(training / "run").empty()) << "what was saved before is there";
  }
  const Outcome again = training.Run("run", {"train.steps=20"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, testing::AnyOf(HasSubstr("resumed from"), HasSubstr("finished at step")));
}

TEST(Signals, LaterOnesKeepTheCode) {
  for (const auto& [signal, hosts] : {std::pair(SIGTERM, 1), {SIGHUP, 1}, {SIGUSR1, 1}, {SIGTERM, 2}}) {
    const Training training({"train.steps=1000000", "train.eval_every=0", "checkpoint.every=0"});
    Process process(training.RunCommand("run", {fmt::format("mesh.hosts={}", hosts)}));
    ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= 5; })) << process.err();
    process.KillUntilItEnds(signal);
    ExpectStoppedAndSaved(process.Wait(), training / "run");
  }
}

TEST(Signals, WhileLoadingAndInTheFirstStep) {
  Sets sets = SlowSteps();
  sets.insert(sets.end(), {"train.steps=1000", "data.eval_tokens=0", "train.eval_every=0", "checkpoint.every=0"});
  for (const bool loading : {true, false}) {
    const Training training(sets);
    Process process(training.RunCommand());
    if (loading) {
      ASSERT_EQ(process.AwaitChildren(2).size(), 2U) << process.err();
    } else {
      ASSERT_TRUE(process.Await([&] { return Has(process.err(), "started from scratch"); }));
    }
    process.Kill(SIGTERM);
    ExpectStoppedAndSaved(process.Wait(), training / "run");
    // On a busy machine a signal may come a step late.
    EXPECT_LE(ReadMetrics(training / "run").last_step(), loading ? 1 : 3);
  }
}

TEST(Signals, BeforeTheRanksStart) {
  const Training training({"train.steps=50", "train.eval_every=0"});
  std::mt19937 generator(40);
  for (int i = 0; i < 8; ++i) {
    Process process(training.RunCommand());
    std::this_thread::sleep_for(std::chrono::microseconds(generator() % 60'000));
    process.Kill(SIGTERM);
    const Outcome outcome = process.Wait(Seconds{10});
    // Until the launcher watches for signals, a signal ends it: nothing is lost yet.
    EXPECT_THAT(outcome.status, AnyOf(128 + SIGTERM, 75, 0)) << outcome.err;
    EXPECT_TRUE(outcome.all_gone);
    // From the moment in which it takes the run directory, its end is on record.
    EXPECT_FALSE(std::filesystem::exists(training / "run/launch.json"));
    for (const auto& [path, text] : ContentsOf(training.path())) {
      if (Has(path, "attempt.json")) {
        EXPECT_TRUE(Has(text, "\"ended_at\"")) << path;
      }
    }
  }
  ASSERT_EQ(training.Run().status, 0);
  ASSERT_EQ(training.Run("whole").status, 0);
  ExpectSameRun(training / "run", training / "whole");
}

/// Returns the lines of metrics.jsonl without the evaluation of a step.
auto WithoutEvalOf(int64_t step, const std::string& lines) -> std::string {
  std::string kept;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    const bool is_it = Has(line, "eval_loss") && Has(line, fmt::format("\"step\":{},", step));
    kept += is_it ? "" : line + "\n";
  }
  return kept;
}

TEST(Signals, DuringAnEvaluation) {
  // About a hundred times per step.
  const Training training({"train.steps=40", "train.eval_every=10", "data.eval_tokens=36000"});
  ASSERT_EQ(training.Run("whole").status, 0);
  Process process(training.RunCommand());
  ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() == 10; })) << process.err();
  ASSERT_TRUE(ReadMetrics(training / "run").evals.empty());
  process.Kill(SIGUSR1);
  const Outcome outcome = process.Wait();
  ExpectStoppedAndSaved(outcome, training / "run");
  const Metrics metrics = ReadMetrics(training / "run");
  EXPECT_EQ(metrics.last_step(), 10);
  EXPECT_EQ(metrics.evals.size(), 0U) << "a loss of some samples is none";
  EXPECT_THAT(outcome.err, HasSubstr("\nstep 10: the evaluation stopped as asked after "));
  ASSERT_EQ(training.Run().status, 0);
  WriteText(training / "whole/metrics.jsonl", WithoutEvalOf(10, ReadText(training / "whole/metrics.jsonl")));
  ExpectSameRun(training / "run", training / "whole");
}

TEST(Signals, DuringTheLastEvaluation) {
  const Training training({"train.steps=2", "train.eval_every=0", "data.eval_tokens=36000"});
  Process process(training.RunCommand());
  ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() == 2; })) << process.err();
  process.Kill(SIGTERM);
  ExpectStoppedAndSaved(process.Wait(), training / "run");
  EXPECT_TRUE(ReadMetrics(training / "run").evals.empty());
  const Outcome again = training.Run();
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.err, HasSubstr(": complete, 2 of 2 steps\n"));
}

TEST(Signals, DuringASave) {
  const Training training(
      {"train.steps=20", "data.eval_tokens=0", "checkpoint.every=10", "checkpoint.keep=0", "model.hidden=256"});
  ASSERT_EQ(training.Run("whole").status, 0);
  const std::string run_dir = training / "run";
  {
    Process process(training.RunCommand());
    ASSERT_TRUE(process.Await([&] { return !UnfinishedSavesOf(run_dir).empty(); })) << process.err();
    process.Kill(SIGTERM);
    ExpectStoppedAndSaved(process.Wait(), run_dir);
    EXPECT_THAT(CheckpointsOf(run_dir), ElementsAre("step-00000010", "step-00000011"));
  }
  {
    // In the last save nothing is left to stop.
    Process process(training.RunCommand());
    ASSERT_TRUE(process.Await([&] { return !UnfinishedSavesOf(run_dir).empty(); })) << process.err();
    process.Kill(SIGTERM);
    const Outcome outcome = process.Wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(CheckpointsOf(run_dir).back(), "step-00000020");
  }
  ExpectSameRun(run_dir, training / "whole");
}

}  // namespace
}  // namespace shardc
