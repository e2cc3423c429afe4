// Standard streams that nobody reads, that are full or that are closed: training continues to its end, and no message
// goes into another file.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/core/runner.h"
#include "runtime/core/unsaved_warning.h"
#include "runtime/launch/launch.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::HasSubstr;

/// Puts the end of a pipe whose reader has gone under a descriptor.
auto BreakStream(int descriptor) -> void {
  int ends[2];
  if (pipe(ends) != 0 || close(ends[0]) != 0 || dup2(ends[1], descriptor) < 0) {
    _exit(99);
  }
}

TEST(Streams, ThatNobodyReadsEndNoRun) {
  const Training training({"train.steps=30", "checkpoint.every=10", "checkpoint.keep=0"});
  ASSERT_EQ(training.Run("whole").status, 0);
  const auto break_both = [] {
    BreakStream(STDOUT_FILENO);
    BreakStream(STDERR_FILENO);
  };
  const Outcome outcome = RunProcess(training.RunCommand(), {.before_exec = break_both});
  EXPECT_EQ(outcome.status, 0);
  ExpectSameRun(training / "run", training / "whole");
}

TEST(Streams, ThatLoseTheirReaderOnTheWayEndNoRun) {
  const Training training({"train.steps=60", "train.log_every=1"});
  ASSERT_EQ(training.Run("whole").status, 0);
  const Outcome outcome =
      RunProcess({"/bin/sh", "-c",
                  fmt::format("{{ {}; echo $? > status; }} 2>&1 | head -1", fmt::join(training.RunCommand(), " "))},
                 {.folder = training.path()});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("run tiny"));
  EXPECT_TRUE(AwaitTrue([&] { return ReadText(training / "status") == "0\n"; }, Seconds{30}))
      << ReadText(training / "status");
  ExpectSameRun(training / "run", training / "whole");
}

TEST(Streams, ThatAreClosedGetNoOtherFilesNumber) {
  const Training training({"train.steps=30"});
  ASSERT_EQ(training.Run("whole").status, 0);
  const auto close_all = [] {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      close(descriptor);
    }
  };
  const Outcome outcome = RunProcess(training.RunCommand(), {.before_exec = close_all});
  EXPECT_EQ(outcome.status, 0);
  ExpectSameRun(training / "run", training / "whole");
}

TEST(Streams, AFullDeviceEndsNoRun) {
  const Training training({"train.steps=30"});
  ASSERT_EQ(training.Run("whole").status, 0);
  const auto fill = [] { dup2(open("/dev/full", O_WRONLY), STDERR_FILENO); };
  const Outcome outcome = RunProcess(training.RunCommand(), {.before_exec = fill});
  EXPECT_EQ(outcome.status, 0);
  ExpectSameRun(training / "run", training / "whole");
}

auto LogOf(const Training& training, const Sets& sets, Seconds warn_after) -> std::string {
  const Plan plan = training.Compile(sets);
  testing::internal::CaptureStderr();
  const auto code = LaunchThreads(plan, {.run_dir = training / "run"}, [&](RankContext& context) {
    context.unsaved_warning = warn_after;
    return RunRank(context);
  });
  std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(code.ok() && *code == ExitCode::Ok) << log;
  return log;
}

TEST(UnsavedWarning, IsGivenOnceAndSaysWhatASaveWrites) {
  const Training training({"train.steps=10", "checkpoint.every=0"});
  const std::string log = LogOf(training, {}, Seconds{0});
  const size_t at = log.find("has saved nothing: `checkpoint.every` is 0");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find("has saved nothing", at + 1), std::string::npos) << log;
  // 37,024 parameters in f32, and two moments of each.
  EXPECT_THAT(log, HasSubstr(fmt::format("a save writes {} in all", FormatMemory(Bytes{37024 * 12}))));
}

TEST(UnsavedWarning, IsNotGivenEarlyNorWhereTheRunSaves) {
  const Training training({"train.steps=10", "checkpoint.every=0"});
  EXPECT_THAT(LogOf(training, {}, Seconds{600}), testing::Not(HasSubstr("has saved nothing")));
  const Training saving({"train.steps=10", "checkpoint.every=1000"});
  EXPECT_THAT(LogOf(saving, {}, Seconds{0}), testing::Not(HasSubstr("has saved nothing")));
}

}  // namespace
}  // namespace shardc
