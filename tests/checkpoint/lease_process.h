// Leases with short times, and processes that hold them.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "compiler/checkpoint/lease.h"
#include "tests/support/temporary_folder.h"

namespace shardc {

/// Short times, so that a test can wait for them.
inline auto Quick() -> LeaseOptions {
  return {.what = "checkpoint directory",
          .remedy = "set `checkpoint.dir` to another folder",
          .beat = Seconds{0.02},
          .stale_after = Seconds{0.5},
          .poll = Seconds{0.01},
          .while_waiting = {},
          .note = {}};
}

inline auto NamesIn(const std::string& folder) -> std::vector<std::string> {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline auto Milliseconds(int64_t count) -> std::chrono::milliseconds { return std::chrono::milliseconds(count); }

/// A process that runs `body` and ends with what that returns.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : pid_(fork()) {
    CHECK(pid_ >= 0, "fork");
    if (pid_ == 0) {
      _exit(body());
    }
  }
  Child(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      Wait();
    }
  }
  auto pid() const -> pid_t { return pid_; }
  auto Kill(int signal) const -> void { kill(pid_, signal); }
  /// Returns once it stands still.
  auto Stop() const -> void {
    Kill(SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }
  /// The exit status, 128 + n for signal n.
  auto Wait() -> int {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_ = 0;
};

/// Holds a lease until it is killed.
inline auto Owner(const std::string& folder) -> std::unique_ptr<Child> {
  auto child = std::make_unique<Child>([&] {
    const auto lease = Lease::Acquire(folder, "owner", Quick());
    if (!lease.ok()) {
      return 1;
    }
    WriteText(folder + "/ready", "");
    std::this_thread::sleep_for(std::chrono::minutes(5));
    return 2;
  });
  while (!std::filesystem::exists(folder + "/ready")) {
    std::this_thread::sleep_for(Milliseconds(1));
  }
  std::filesystem::remove(folder + "/ready");
  return child;
}

}  // namespace shardc
