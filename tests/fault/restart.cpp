// The whole job killed, at any moment: new processes with the unchanged recipe end where an uninterrupted run ends, to
// the bit, and the newest committed checkpoint always loads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// The step in the last line "step N: saved ..." of a log; 0 without one.
auto LastSaved(const std::string& log) -> int64_t {
  const size_t saved = log.rfind(": saved ");
  if (saved == std::string::npos) {
    return 0;
  }
  return std::stoll(log.substr(log.rfind("step ", saved) + 5));
}

/// The step of the newest checkpoint under its final name; 0 without one.
auto NewestStep(const std::string& run_dir) -> int64_t {
  const auto names = CheckpointsOf(run_dir);
  return names.empty() ? 0 : std::stoll(names.back().substr(5));
}

TEST(Restart, KilledJobEndsAsIfNothingHadHappened) {
  const Training training({"train.steps=300", "train.eval_every=40", "checkpoint.every=25"});
  ASSERT_EQ(training.Run("whole").status, 0);
  const std::string run_dir = training / "run";
  // At first every process, then the launcher only: the ranks die with it.
  for (const int64_t kill_at : {100, 200}) {
    Process process(training.RunCommand());
    ASSERT_TRUE(process.Await([&] { return ReadMetrics(run_dir).last_step() >= kill_at; })) << process.err();
    if (kill_at == 100) {
      process.KillGroup(SIGKILL);
    } else {
      process.Kill(SIGKILL);
    }
    const Outcome outcome = process.Wait();
    ASSERT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;
    EXPECT_TRUE(outcome.all_gone);
    EXPECT_GE(NewestStep(run_dir), kill_at - 25);
  }
  const int64_t newest = NewestStep(run_dir);
  const Outcome last = training.Run();
  ASSERT_EQ(last.status, 0) << last.err;
  EXPECT_THAT(last.err, HasSubstr(fmt::format("resumed from {}/checkpoints/{} at step {}\n", run_dir,
                                              CheckpointNameOf(newest), newest)));
  ExpectSameRun(run_dir, training / "whole");
}

TEST(Restart, KilledBeforeTheFirstSaveBeginsAnew) {
  const Training training({"train.steps=200", "train.eval_every=0", "checkpoint.every=0"});
  Process process(training.RunCommand());
  ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= 20; })) << process.err();
  process.KillGroup(SIGKILL);
  ASSERT_EQ(process.Wait().status, 128 + SIGKILL);
  const Outcome again = training.Run("run", {"train.steps=10"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("run tiny: started from scratch"));
  ASSERT_EQ(training.Run("whole", {"train.steps=10"}).status, 0);
  ExpectSameRun(training / "run", training / "whole");
}

TEST(Restart, KillsDuringSavesNeverCostACommittedCheckpoint) {
  // Saves every step: a kill hits one more often than not.
  const Training training({"train.steps=250", "train.eval_every=0", "checkpoint.every=1", "model.hidden=64"});
  ASSERT_EQ(training.Run("whole").status, 0);
  const std::string run_dir = training / "run";
  std::mt19937 generator(20);
  int64_t before = 0;
  int64_t num_unfinished = 0;
  constexpr int Kills = 14;
  for (int i = 0; i < Kills; ++i) {
    Process process(training.RunCommand());
    ASSERT_TRUE(process.Await([&] { return ReadMetrics(run_dir).last_step() >= before + 2; })) << process.err();
    if (i % 2 == 0) {
      process.Await([&] { return !UnfinishedSavesOf(run_dir).empty(); });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(generator() % 6000));
    process.KillGroup(SIGKILL);
    const Outcome outcome = process.Wait();
    ASSERT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;
    num_unfinished += UnfinishedSavesOf(run_dir).empty() ? 0 : 1;
    EXPECT_THAT(outcome.err, before == 0
                                 ? HasSubstr("started from scratch")
                                 : HasSubstr(fmt::format("/{} at step {}\n", CheckpointNameOf(before), before)));
    const int64_t newest = NewestStep(run_dir);
    EXPECT_GE(newest, LastSaved(outcome.err)) << "a save that was acknowledged is gone";
    EXPECT_GE(newest, before);
    EXPECT_GE(newest, 1);
    before = newest;
  }
  EXPECT_GE(num_unfinished, 1) << "of " << Kills << " kills none hit a save";
  const Outcome last = training.Run();
  ASSERT_EQ(last.status, 0) << last.err;
  EXPECT_THAT(last.err, Not(HasSubstr("started from scratch")));
  EXPECT_THAT(UnfinishedSavesOf(run_dir), IsEmpty());
  EXPECT_EQ(CheckpointsOf(run_dir).size(), 2U);
  ExpectSameRun(run_dir, training / "whole");
}

TEST(Restart, KillsAtTheStartLeaveNothingThatIsInTheWay) {
  const Training training({"train.steps=20"});
  std::mt19937 generator(21);
  for (int i = 0; i < 6; ++i) {
    Process process(training.RunCommand());
    std::this_thread::sleep_for(std::chrono::milliseconds(generator() % 200));
    process.KillGroup(SIGKILL);
    EXPECT_THAT(process.Wait().status, AnyOf(128 + SIGKILL, 0));
  }
  const Outcome last = training.Run();
  ASSERT_EQ(last.status, 0) << last.err;
  ASSERT_EQ(training.Run("whole").status, 0);
  ExpectSameRun(training / "run", training / "whole");
}

}  // namespace
}  // namespace shardc
