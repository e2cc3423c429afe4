// Members of a job, as processes of their own: what each has to say comes back by a pipe.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/net/store.h"
#include "runtime/net/store_server.h"
#include "tests/support/process.h"

namespace shardc {

using Clock = std::chrono::steady_clock;

inline auto SecondsSince(Clock::time_point begin) -> double {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// How much later than its bound anything may end on a busy machine.
constexpr double Slack = IsSanitized ? 30 : 3;

/// No test leaves a process.
class NetTest : public testing::Test {
 protected:
  auto TearDown() -> void override {
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  }
};

class Members {
 public:
  /// Each says what `main` returns for its index.
  Members(int64_t count, const std::function<std::string(int64_t)>& main) {
    for (int64_t i = 0; i < count; ++i) {
      int ends[2];
      EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
      const pid_t pid = fork();
      if (pid == 0) {
        const std::string said = main(i);
        EXPECT_EQ(write(ends[1], said.data(), said.size()), static_cast<ssize_t>(said.size()));
        _exit(testing::Test::HasFailure() ? 1 : 0);
      }
      close(ends[1]);
      pids_.push_back(pid);
      pipes_.emplace_back(ends[0]);
    }
  }
  Members(const Members&) = delete;
  ~Members() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  auto pid(int64_t i) const -> pid_t { return pids_[static_cast<size_t>(i)]; }
  auto Kill(int64_t i, int signal) const -> void { kill(pid(i), signal); }
  /// What a member said until it ended, or was silent for too long.
  auto Text(int64_t i) const -> std::string {
    std::string text;
    pollfd watched{.fd = pipes_[static_cast<size_t>(i)].number(), .events = POLLIN, .revents = 0};
    char bytes[4096];
    while (poll(&watched, 1, static_cast<int>(Process::Patience.value * 1000)) > 0) {
      const ssize_t count = read(watched.fd, bytes, sizeof bytes);
      if (count <= 0) {
        // Not waited for: the destructor still sends a signal.
        siginfo_t end{};
        waitid(P_PID, static_cast<id_t>(pid(i)), &end, WEXITED | WNOWAIT);
        return end.si_code == CLD_EXITED ? text : fmt::format("{}(signal {})", text, end.si_status);
      }
      text.append(bytes, static_cast<size_t>(count));
    }
    return text + " (it did not end)";
  }
  auto Texts() const -> std::vector<std::string> {
    std::vector<std::string> texts;
    for (size_t i = 0; i < pids_.size(); ++i) {
      texts.push_back(Text(static_cast<int64_t>(i)));
    }
    return texts;
  }

 private:
  std::vector<pid_t> pids_;
  std::vector<OwnedDescriptor> pipes_;
};

/// `prefix`: of the job whose members it watches; empty: of none.
inline auto StartServer(const std::string& host = "127.0.0.1", Seconds linger = {1}, const std::string& prefix = "")
    -> StoreServer {
  auto server = StoreServer::Start({host, 0}, {.linger = linger, .prefix = prefix});
  CHECK(server.ok(), "{}", server.error().message);
  return *std::move(server);
}

inline auto ConnectTo(const StoreServer& server, const std::string& prefix = "job", Seconds timeout = {10},
                      const std::string& host = "127.0.0.1") -> std::unique_ptr<JobStore> {
  auto store = JobStore::Connect({host, server.port()}, prefix, timeout);
  CHECK(store.ok(), "{}", store.error().message);
  return *std::move(store);
}

}  // namespace shardc
