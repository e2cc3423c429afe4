#include "tests/support/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <utility>

#include "compiler/base/process_stat.h"

namespace shardc {

using Clock = std::chrono::steady_clock;

static auto SecondsSince(Clock::time_point begin) -> Seconds {
  return Seconds{std::chrono::duration<double>(Clock::now() - begin).count()};
}

auto AwaitTrue(const std::function<bool()>& condition, Seconds longest) -> bool {
  const auto begin = Clock::now();
  while (!condition()) {
    if (SecondsSince(begin) >= longest) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  return true;
}

static auto CaptureStream(const std::string& path, int stream) -> void {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  if (file < 0 || dup2(file, stream) < 0) {
    _exit(126);
  }
  close(file);
}

Process::Process(const std::vector<std::string>& command, const ProcessOptions& options) {
  // Orphans of the group become children of the test, so that their end can be awaited.
  CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "prctl");
  std::vector<std::string> texts = command;
  std::vector<char*> argv;
  for (std::string& text : texts) {
    argv.push_back(text.data());
  }
  argv.push_back(nullptr);
  std::fflush(nullptr);
  pid_ = fork();
  CHECK(pid_ >= 0, "fork");
  if (pid_ == 0) {
    setpgid(0, 0);
    CaptureStream(streams_ / "out", STDOUT_FILENO);
    CaptureStream(streams_ / "err", STDERR_FILENO);
    for (const std::string& variable : options.environment) {
      const size_t equals = variable.find('=');
      setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
    }
    if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) {
      _exit(126);
    }
    if (options.before_exec) {
      options.before_exec();
    }
    execv(argv[0], argv.data());
    _exit(127);
  }
  setpgid(pid_, pid_);
}

Process::~Process() {
  if (wait_status_ == -1) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  // Whoever is left of the group.
  kill(-pid_, SIGKILL);
  while (waitpid(-pid_, nullptr, 0) > 0) {
  }
}

auto Process::Kill(int signal) const -> void { kill(pid_, signal); }
auto Process::KillGroup(int signal) const -> void { kill(-pid_, signal); }

auto Process::KillUntilItEnds(int signal) -> void {
  AwaitTrue(
      [&] {
        const bool ended = !is_running();
        if (!ended) {
          Kill(signal);
        }
        return ended;
      },
      Patience);
}

auto Process::Children() const -> std::vector<pid_t> {
  // By start time, then by number.
  std::vector<std::pair<int64_t, pid_t>> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size()) {
      continue;
    }
    const auto stat = ReadProcessStat(pid);
    if (stat && stat->parent == pid_ && stat->state != 'Z' && stat->state != 'X') {
      children.emplace_back(stat->start, pid);
    }
  }
  std::sort(children.begin(), children.end());
  std::vector<pid_t> pids;
  for (const auto& [start, pid] : children) {
    pids.push_back(pid);
  }
  return pids;
}

auto Process::AwaitChildren(size_t count) -> std::vector<pid_t> {
  std::vector<pid_t> children;
  Await([&] {
    children = Children();
    return children.size() >= count;
  });
  return children;
}

auto Process::Await(const std::function<bool()>& condition) -> bool {
  bool holds = false;
  AwaitTrue(
      [&] {
        const bool running = is_running();
        holds = condition();
        return holds || !running;
      },
      Patience);
  return holds;
}

auto Process::is_running() -> bool {
  int status = 0;
  if (wait_status_ == -1 && waitpid(pid_, &status, WNOHANG) == pid_) {
    wait_status_ = status;
  }
  return wait_status_ == -1;
}

auto Process::AwaitAllGone() const -> bool {
  return AwaitTrue([&] { return waitpid(-pid_, nullptr, WNOHANG) < 0 && errno == ECHILD; }, Seconds{2});
}

auto Process::Wait(Seconds deadline) -> Outcome {
  Outcome outcome;
  const auto begin = Clock::now();
  const bool ended = AwaitTrue([&] { return !is_running(); }, deadline);
  outcome.waited = SecondsSince(begin);
  if (ended) {
    outcome.status = WIFSIGNALED(wait_status_) ? 128 + WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_);
    outcome.all_gone = AwaitAllGone();
  } else {
    kill(-pid_, SIGKILL);
    AwaitTrue([&] { return !is_running(); }, Seconds{10});
  }
  outcome.out = out();
  outcome.err = err();
  return outcome;
}

auto RunProcess(const std::vector<std::string>& command, const ProcessOptions& options) -> Outcome {
  Process process(command, options);
  return process.Wait();
}

}  // namespace shardc
