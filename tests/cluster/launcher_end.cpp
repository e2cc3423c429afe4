// A process whose launcher is killed gets SIGTERM, if the launcher is its parent.

#include "compiler/cluster/launcher_end.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "tests/cluster/environments.h"
#include "tests/support/process.h"

namespace shardc {
namespace {

/// How much later than its bound anything may end on a busy machine.
constexpr double Slack = IsSanitized ? 30 : 3;

/// A launcher that starts a process with the variables of `environment`, and waits; both end within a minute.
auto StartLauncher(const Environment& environment) -> Process {
  return Process({"/bin/sleep", "60"}, {.before_exec = [&] {
                   if (fork() == 0) {
                     EndWithLauncher(LookUpIn(environment));
                     execl("/bin/sleep", "sleep", "60", nullptr);
                   }
                 }});
}

TEST(LauncherEnd, IsSigtermToItsProcesses) {
  for (const auto& [environment, is_told] : {std::pair(Torchrun, true), {ByHand, false}, {Environment(), false}}) {
    Process launcher = StartLauncher(environment);
    const auto ranks = launcher.AwaitChildren(1);
    ASSERT_EQ(ranks.size(), 1U);
    Sleep(300);
    launcher.Kill(SIGKILL);
    // An orphan becomes a child of the test.
    int status = 0;
    const bool ended =
        AwaitTrue([&] { return waitpid(ranks[0], &status, WNOHANG) == ranks[0]; }, {1 + (is_told ? Slack : 0)});
    EXPECT_EQ(ended, is_told);
    EXPECT_EQ(ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, is_told);
  }
}

TEST(LauncherEnd, LeavesProcessesOfLiveLauncher) {
  Process launcher = StartLauncher(Torchrun);
  const auto ranks = launcher.AwaitChildren(1);
  ASSERT_EQ(ranks.size(), 1U);
  Sleep(1000);
  EXPECT_EQ(launcher.Children(), ranks);
}

}  // namespace
}  // namespace shardc
