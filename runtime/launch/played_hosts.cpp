// Several hosts, played by one machine: a process for each, which starts the ranks of its host as on a host of its own.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <vector>

#include "compiler/base/printable.h"
#include "runtime/control/control_block.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/stop_signals.h"
#include "runtime/meet/meeting.h"
#include "runtime/meet/open_store.h"
#include "runtime/net/store_server.h"

namespace shardc {

/// Runs a process that plays one of several hosts.
static auto PlayHost(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main, int64_t host,
                     uint16_t port) -> ExitCode {
  const LaunchPlace place{.launcher = "shardc",
                          .process = host,
                          .num_processes = plan.mesh.hosts,
                          .master_host = "127.0.0.1",
                          .master_port = port};
  const auto run = [&]() -> ErrorOr<ExitCode> {
    ASSIGN_OR_RETURN(auto meeting, Meeting::Open(place, {.opens_store = false,
                                                         .own_address = "127.0.0.1",
                                                         .timeout = options.timeout,
                                                         .host_suffix = fmt::format("#{}", host),
                                                         .interrupt = StopsBetweenWaits()}));
    LaunchOptions played = options;
    played.hosts_are_played = true;
    auto result = LaunchHost(plan, played, rank_main, meeting);
    meeting.Close(result);
    return result;
  };
  const auto result = run();
  if (!result && host == 0) {
    std::cerr << "error: " << Printable(result.error().message) << "\n";
  }
  return result ? *result : result.error().code;
}

/// More are a plan for a cluster that was started on one machine by mistake.
static constexpr int64_t MostPlayedHosts = 64;

auto LaunchPlayedHosts(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main) -> ErrorOr<ExitCode> {
  const int64_t num_hosts = plan.mesh.hosts;
  FAIL_IF(num_hosts > 1 && plan.mesh.num_ranks() > ControlBlock::MaxRanks, ExitCode::Environment,
          "the plan has {} ranks on {} hosts, and this launch has one host, which runs at most {} ranks; start it on "
          "the hosts (docs/cluster.md)",
          plan.mesh.num_ranks(), num_hosts, ControlBlock::MaxRanks);
  FAIL_IF(num_hosts > MostPlayedHosts, ExitCode::Environment, "the plan is for {} hosts; one machine plays at most {}",
          num_hosts, MostPlayedHosts);
  ASSIGN_OR_RETURN(const auto store,
                   StoreServer::Start({"127.0.0.1", 0}, {.linger = Seconds{0}, .prefix = PrefixOf({})}));
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t player = getpid();
  std::vector<pid_t> pids;
  for (int64_t host = 0; host < num_hosts; ++host) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != player) {
        _exit(static_cast<int>(ExitCode::Environment));
      }
      _exit(static_cast<int>(PlayHost(plan, options, rank_main, host, store.port())));
    }
    if (pid < 0) {
      const int error = errno;
      for (const pid_t started : pids) {
        kill(started, SIGKILL);
      }
      return Fail(ExitCode::Environment, "cannot start host {} of {}: {}", host, num_hosts, std::strerror(error));
    }
    pids.push_back(pid);
  }
  const SignalScope signals;
  ErrorOr<ExitCode> result = ExitCode::Ok;
  size_t running = pids.size();
  while (running > 0) {
    const int signal = signals.Next();
    for (pid_t& pid : pids) {
      int status = 0;
      if (pid > 0 && signal > 0 && signal != SIGCHLD) {
        kill(pid, signal);
      }
      if (pid > 0 && waitpid(pid, &status, WNOHANG) == pid) {
        pid = 0;
        --running;
        const ExitCode code = WIFEXITED(status) ? static_cast<ExitCode>(WEXITSTATUS(status)) : ExitCode::Environment;
        result = *result == ExitCode::Ok ? code : *result;
      }
    }
  }
  return result;
}

}  // namespace shardc
