// The guard of a process: what it ends, what it leaves alone, and when it ends itself.

#include "compiler/cluster/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>
#include <vector>

#include "compiler/base/process_stat.h"
#include "tests/cluster/environments.h"
#include "tests/support/process.h"

namespace shardc {
namespace {

constexpr double Timeout = 0.5;
/// Of a stop, until the guard ends the process.
constexpr double Longest = Timeout + 4;
constexpr int LongestMs = static_cast<int>(1000 * Longest);
/// How much later than its bound anything may end on a busy machine.
constexpr double Slack = IsSanitized ? 30 : 3;

auto StartGuarded(const std::vector<std::string>& command, const Environment& environment = Torchrun) -> Process {
  return Process(command, {.before_exec = [&] { StartGuard(LookUpIn(environment), {Timeout}); }});
}

TEST(Guard, EndsAProcessThatStaysStopped) {
  Process process = StartGuarded({"/bin/sleep", "60"});
  ASSERT_EQ(process.AwaitChildren(1).size(), 1U);
  process.Kill(SIGSTOP);
  const Outcome outcome = process.Wait({Longest + Slack});
  EXPECT_EQ(outcome.status, 128 + SIGKILL);
  EXPECT_GE(outcome.waited.value, Longest - 0.6);
  EXPECT_TRUE(outcome.all_gone) << "the guard ends too";
  EXPECT_THAT(outcome.err, testing::MatchesRegex("warning: process 3 of 4 \\(.+\\) has been stopped for [45] s "
                                                 "\\(SIGSTOP\\), and is ended\n"));
}

TEST(Guard, LeavesAloneWhatGoesOnInTimeAndASuspendedGroup) {
  Process process = StartGuarded({"/bin/sleep", "60"});
  Process suspended = StartGuarded({"/bin/sleep", "60"});
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

TEST(Guard, ALauncherStaysStoppedWhileItsRanksGoOn) {
  // The inner shell has the name of the outer one, as a rank has that of its launcher.
  Process launcher = StartGuarded({"/bin/sh", "-c", "sh -c 'sleep 60; :'; :"});
  const auto children = launcher.AwaitChildren(2);
  ASSERT_EQ(children.size(), 2U);
  launcher.Kill(SIGSTOP);
  Sleep(LongestMs + 1500);
  EXPECT_TRUE(launcher.is_running());
  // A rank that is stopped does not go on.
  kill(children[1], SIGSTOP);
  EXPECT_EQ(launcher.Wait({Slack}).status, 128 + SIGKILL);
}

TEST(Guard, EndsWithItsProcessAndOutlivesSignalsToTheGroup) {
  Process process = StartGuarded({"/bin/sh", "-c", "trap '' TERM USR1 INT HUP; while :; do sleep 60; done"});
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

/// A launcher that starts a process with the variables of `environment`, and waits; both end within a minute.
auto StartLauncher(const Environment& environment) -> Process {
  return Process({"/bin/sleep", "60"}, {.before_exec = [&] {
                   if (fork() == 0) {
                     StartGuard(LookUpIn(environment), {Timeout});
                     execl("/bin/sleep", "sleep", "60", nullptr);
                   }
                 }});
}

TEST(Guard, TellsAProcessToEndWhoseLauncherIsKilled) {
  for (const auto& [environment, is_told] : {std::pair(Torchrun, true), std::pair(ByHand, false)}) {
    Process launcher = StartLauncher(environment);
    const auto ranks = launcher.AwaitChildren(1);
    ASSERT_EQ(ranks.size(), 1U);
    Sleep(600);
    launcher.Kill(SIGKILL);
    // An orphan becomes a child of the test.
    int status = 0;
    const bool ended =
        AwaitTrue([&] { return waitpid(ranks[0], &status, WNOHANG) == ranks[0]; }, {1 + (is_told ? Slack : 0)});
    EXPECT_EQ(ended, is_told);
    EXPECT_EQ(ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, is_told);
    EXPECT_EQ(launcher.err().find("warning: process 3 of 4 (") == 0, is_told) << launcher.err();
    EXPECT_EQ(launcher.err().find("): torchrun, which started it, is gone, so it is told to save and end") !=
                  std::string::npos,
              is_told);
  }
}

TEST(Guard, IsThereInALaunchOnly) {
  EXPECT_TRUE(StartGuarded({"/bin/sleep", "1"}, {}).AwaitChildren(1).empty());
  // Whose variables are wrong is in a launch all the same: it tells the others.
  EXPECT_EQ(StartGuarded({"/bin/sleep", "60"}, With(Torchrun, {{"LOCAL_RANK", "7"}})).AwaitChildren(1).size(), 1U);
}

}  // namespace
}  // namespace shardc
