// A launch that has to end saves early enough, and the next one continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/time_limit.h"
#include "tests/hosts/job.h"

namespace shardc {
namespace {

using testing::HasSubstr;

TEST(TimeLimit, LeavesTimeForOneStepAndASave) {
  const auto now = TimeLimit::Clock::now();
  TimeLimit limit(now + std::chrono::seconds(100), Seconds{10});
  limit.NoteStep(Seconds{20});
  EXPECT_FALSE(limit.IsNear(now));
  EXPECT_FALSE(limit.IsNear(now + std::chrono::seconds(53)));
  EXPECT_TRUE(limit.IsNear(now + std::chrono::seconds(55)));
  // The first save was faster than thought.
  limit.NoteSave(Seconds{2});
  EXPECT_FALSE(limit.IsNear(now + std::chrono::seconds(55)));
  EXPECT_TRUE(limit.IsNear(now + std::chrono::seconds(67)));
  EXPECT_FALSE(TimeLimit().IsNear());
}

TEST(TimeLimit, ALaunchSavesBeforeItAndTheNextContinues) {
  const Training training({"mesh.dp=2", "train.steps=1000000", "train.eval_every=0", "checkpoint.every=0"});
  const Outcome outcome = training.Run("run", {"train.max_minutes=0.05"});
  EXPECT_EQ(outcome.status, 75) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("stopped before the time of this launch is over"));
  EXPECT_LT(outcome.waited.value, 10);
  ASSERT_EQ(CheckpointsOf(training / "run").size(), 1U);
  const int64_t reached = ReadMetrics(training / "run").last_step();
  const Outcome next = training.Run("run", {fmt::format("train.steps={}", reached + 5)});
  EXPECT_EQ(next.status, 0) << next.err;
  EXPECT_THAT(next.err, HasSubstr("resumed from"));
}

TEST(TimeLimit, OneStepPerLaunchIsTold) {
  const Training training({"mesh.dp=2", "train.eval_every=0"});
  const std::string note = "and left enough for one step: launch after launch will take one; set train.max_minutes";
  const Outcome one = training.Run("run", {"train.max_minutes=0.001"});
  EXPECT_EQ(one.status, 75) << one.err;
  EXPECT_THAT(one.err, HasSubstr("step 1: stopped before the time of this launch is over\nnote: the start took "));
  EXPECT_THAT(one.err, HasSubstr(note));
  EXPECT_THAT(training.Run().err, testing::Not(HasSubstr(note)));
}

TEST(StopAfter, EndsEachLaunchWithASave) {
  const Training training({"mesh.dp=2", "train.steps=8", "train.eval_every=0", "checkpoint.every=0"});
  ASSERT_EQ(training.Run("whole").status, 0);
  const auto run = [&](const std::string& steps) {
    std::vector<std::string> command = training.RunCommand();
    command.insert(command.end(), {"--stop-after", steps});
    return RunProcess(command);
  };
  const Outcome first = run("3");
  EXPECT_EQ(first.status, 75) << first.err;
  EXPECT_THAT(first.err, HasSubstr("\nstep 3: stopped after 3 steps of this launch (--stop-after)\n"));
  EXPECT_EQ(CheckpointsOf(training / "run"), std::vector{CheckpointNameOf(3)});
  EXPECT_EQ(ReadMetrics(training / "run").last_step(), 3);
  const Outcome second = run("1");
  EXPECT_EQ(second.status, 75) << second.err;
  EXPECT_THAT(second.err, HasSubstr("\nstep 4: stopped after 1 step of this launch (--stop-after)\n"));
  // The step after which the launch would stop is the last of the run.
  const Outcome last = run("4");
  EXPECT_EQ(last.status, 0) << last.err;
  ExpectSameRun(training / "run", training / "whole");
}

TEST(StopAfter, EndsAllHosts) {
  const Training training({"mesh.dp=2", "train.eval_every=0", "checkpoint.every=0"});
  std::vector<std::string> command = training.RunCommand();
  command.insert(command.end(), {"--stop-after", "2"});
  for (const Outcome& outcome : Job({.hosts = 2, .processes = 1}, {command}).Wait()) {
    EXPECT_EQ(outcome.status, 75) << outcome.err;
  }
  EXPECT_EQ(CheckpointsOf(training / "run"), std::vector{CheckpointNameOf(2)});
}

TEST(StopAfter, IsNotForAnEvaluation) {
  const Outcome outcome =
      RunProcess({SHARDC_BINARY_DIR "/shardc-run", "any.plan", "--eval", "any", "--stop-after", "2"});
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("--stop-after excludes --eval"));
}

TEST(StopAfter, IsTheSameInAllProcesses) {
  const Training training({"mesh.dp=2"});
  std::vector<std::string> other = training.RunCommand();
  other.insert(other.end(), {"--stop-after", "2"});
  const auto outcomes = Job({.hosts = 2, .processes = 1}, {training.RunCommand(), other}).Wait();
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.status, 6) << outcome.err;
  }
  EXPECT_THAT(outcomes[0].err, HasSubstr("--stop-after: nothing in process 0"));
}

}  // namespace
}  // namespace shardc
