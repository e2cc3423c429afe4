// Processes of one launch that are started one by one, some of them never.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/hosts/job.h"

namespace shardc {

/// On a busy machine; without what is tested they would wait for `--timeout`, ten minutes.
constexpr Seconds LongestEnd = Process::Patience;

/// Processes of one launch, some of which are never started.
class MeetingJob {
 public:
  MeetingJob(int64_t world, int64_t per_host) : world_(world), per_host_(per_host) {}

  auto Start(const std::vector<std::string>& command, int64_t rank, const std::vector<std::string>& more = {},
             const std::function<void()>& before_exec = {}) -> Process& {
    std::vector<std::string> environment{"MASTER_ADDR=127.0.0.1",
                                         fmt::format("MASTER_PORT={}", port_),
                                         fmt::format("RANK={}", rank),
                                         fmt::format("WORLD_SIZE={}", world_),
                                         fmt::format("LOCAL_RANK={}", rank % per_host_),
                                         fmt::format("LOCAL_WORLD_SIZE={}", per_host_)};
    environment.insert(environment.end(), more.begin(), more.end());
    processes_.push_back(
        std::make_unique<Process>(command, ProcessOptions{.environment = environment, .before_exec = before_exec}));
    return *processes_.back();
  }
  auto at(size_t i) const -> Process& { return *processes_[i]; }
  auto port() const -> uint16_t { return port_; }

  /// Each but `left_out` ends with `code`, and says `text`.
  auto ExpectAllEnd(int code, const std::string& text, std::optional<size_t> left_out = {}) -> void {
    for (size_t i = 0; i < processes_.size(); ++i) {
      const Outcome outcome = processes_[i]->Wait(LongestEnd);
      if (i != left_out) {
        EXPECT_EQ(outcome.status, code) << i << ": " << outcome.err;
        EXPECT_THAT(outcome.err, testing::HasSubstr(text)) << i;
      }
    }
  }

 private:
  int64_t world_;
  int64_t per_host_;
  uint16_t port_ = FreePort();
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace shardc
