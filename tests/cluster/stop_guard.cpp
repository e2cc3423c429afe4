// The guard of a process: what it ends, what it leaves alone, and when it ends itself.

#include "compiler/cluster/stop_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <vector>

#include "compiler/base/process_stat.h"
#include "tests/cluster/environments.h"
#include "tests/support/process.h"

namespace shardc {
namespace {

using testing::HasSubstr;

constexpr double Timeout = 0.5;
/// Of a stop, until the guard ends the process.
constexpr double Longest = Timeout + 4;
constexpr int LongestMs = 4500;
/// How much later than its bound anything may end on a busy machine.
constexpr double Slack = IsSanitized ? 30 : 3;

auto Guarded(const std::vector<std::string>& command, const Environment& environment = Torchrun) -> Process {
  return Process(command, {.before_exec = [&] { GuardAgainstStops(LookUpIn(environment), {Timeout}); }});
}

TEST(StopGuard, EndsAProcessThatStaysStopped) {
  Process process = Guarded({"/bin/sleep", "60"});
  ASSERT_EQ(process.AwaitChildren(1).size(), 1U);
  process.Kill(SIGSTOP);
  const Outcome outcome = process.Wait({Longest + Slack});
  EXPECT_EQ(outcome.status, 128 + SIGKILL);
  EXPECT_GE(outcome.waited.value, Longest - 0.6);
  EXPECT_TRUE(outcome.all_gone) << "the guard ends too";
  EXPECT_THAT(outcome.err, testing::MatchesRegex("warning: process 3 of 4 \\(.+\\) has been stopped for [45] s "
                                                 "\\(SIGSTOP\\), and is ended\n"));
}

TEST(StopGuard, LeavesAloneWhatGoesOnInTimeAndASuspendedGroup) {
  Process process = Guarded({"/bin/sleep", "60"});
  Process suspended = Guarded({"/bin/sleep", "60"});
  ASSERT_EQ(process.AwaitChildren(1).size(), 1U);
  const auto guards = suspended.AwaitChildren(1);
  ASSERT_EQ(guards.size(), 1U);
  suspended.KillGroup(SIGSTOP);
  // Twice three fifths of the time.
  for (int i = 0; i < 2; ++i) {
    process.Kill(SIGSTOP);
    Sleep(LongestMs * 3 / 5);
    process.Kill(SIGCONT);
    Sleep(1200);
  }
  // The guard goes on first, and counts its own stop as a second.
  kill(guards[0], SIGCONT);
  Sleep(1500);
  suspended.KillGroup(SIGCONT);
  Sleep(1200);
  for (Process* one : {&process, &suspended}) {
    EXPECT_TRUE(one->is_running());
    one->Kill(SIGTERM);
    const Outcome outcome = one->Wait();
    EXPECT_EQ(outcome.status, 128 + SIGTERM);
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(StopGuard, ALauncherStaysStoppedWhileItsRanksGoOn) {
  // The inner shell has the name of the outer one, as a rank has that of its launcher.
  Process launcher = Guarded({"/bin/sh", "-c", "sh -c 'sleep 60; :'; :"});
  const auto children = launcher.AwaitChildren(2);
  ASSERT_EQ(children.size(), 2U);
  launcher.Kill(SIGSTOP);
  Sleep(LongestMs + 1500);
  EXPECT_TRUE(launcher.is_running());
  // A rank that is stopped does not go on.
  kill(children[1], SIGSTOP);
  EXPECT_EQ(launcher.Wait({Slack}).status, 128 + SIGKILL);
}

TEST(StopGuard, EndsWithItsProcessAndOutlivesSignalsToTheGroup) {
  Process process = Guarded({"/bin/sh", "-c", "trap '' TERM USR1 INT HUP; while :; do sleep 60; done"});
  const auto children = process.AwaitChildren(2);
  ASSERT_EQ(children.size(), 2U);
  const auto is_guard = [&] {
    const auto stat = ReadProcessStat(children[0]);
    return stat && stat->name == "shardc-guard" && stat->state != 'Z';
  };
  EXPECT_TRUE(process.Await(is_guard));
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT, SIGHUP}) {
    process.KillGroup(signal);
  }
  Sleep(500);
  EXPECT_TRUE(is_guard());
  // Even if it is stopped itself.
  kill(children[0], SIGSTOP);
  process.Kill(SIGKILL);
  EXPECT_EQ(process.Wait().status, 128 + SIGKILL);
  EXPECT_TRUE(AwaitTrue([&] { return !is_guard(); }, {Slack}));
}

TEST(StopGuard, IsThereInALaunchOnly) {
  EXPECT_TRUE(Guarded({"/bin/sleep", "1"}, {}).AwaitChildren(1).empty());
  // Whose variables are wrong is in a launch all the same: it tells the others.
  EXPECT_EQ(Guarded({"/bin/sleep", "60"}, With(Torchrun, {{"LOCAL_RANK", "7"}})).AwaitChildren(1).size(), 1U);
}

}  // namespace
}  // namespace shardc
