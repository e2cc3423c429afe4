// Runs a function on every rank of a host, as threads or as forked processes, with one shared buffer per rank.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/control/host_control.h"

namespace shardc {

constexpr auto Threads = ControlBlock::Members::Threads;
constexpr auto Processes = ControlBlock::Members::Processes;

class World {
 public:
  static constexpr int64_t BufferBytes = int64_t{1} << 20;

  World(const Mesh& mesh, ControlBlock::Members members, int64_t host = 0) : members_(members) {
    auto block = ControlBlock::Create({.mesh = mesh, .host = host, .members = members});
    CHECK(block.ok(), "{}", block.error().message);
    block_ = *std::move(block);
    const auto bytes = static_cast<size_t>(num_ranks() * (BufferBytes + MessageBytes));
    memory_bytes_ = bytes;
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    CHECK(memory_ != MAP_FAILED, "mmap");
  }
  World(const World&) = delete;
  ~World() { munmap(memory_, memory_bytes_); }

  auto block() -> ControlBlock& { return *block_; }
  auto ranks() const -> Interval { return block_->ranks(); }
  auto num_ranks() const -> int64_t { return ranks().size(); }
  auto buffer(int64_t rank) const -> std::byte* { return memory_ + (rank - ranks().begin) * BufferBytes; }
  /// Returns one text per rank: empty, or what the rank says went wrong; "signal N" for a killed process.
  auto Run(const WaitOptions& options, const std::function<std::string(std::shared_ptr<HostMember>)>& body)
      -> std::vector<std::string> {
    std::vector<std::string> texts(static_cast<size_t>(num_ranks()));
    const auto run_one = [&](int64_t rank) {
      block_->Join(rank);
      std::string text = body(std::make_shared<HostMember>(*block_, rank, options));
      block_->Finish(rank);
      return text;
    };
    if (members_ == ControlBlock::Members::Threads) {
      std::vector<std::thread> threads;
      for (size_t i = 0; i < texts.size(); ++i) {
        threads.emplace_back([&, i] { texts[i] = run_one(ranks().begin + static_cast<int64_t>(i)); });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
      return texts;
    }
    std::fflush(nullptr);
    std::vector<pid_t> pids;
    for (int64_t rank = ranks().begin; rank < ranks().end; ++rank) {
      const pid_t pid = fork();
      CHECK(pid >= 0, "fork");
      if (pid == 0) {
        const std::string text = run_one(rank);
        std::strncpy(message(rank), text.c_str(), MessageBytes - 1);
        _exit(0);
      }
      pids.push_back(pid);
    }
    for (size_t i = 0; i < pids.size(); ++i) {
      int status = 0;
      waitpid(pids[i], &status, 0);
      texts[i] = WIFSIGNALED(status)   ? fmt::format("signal {}", WTERMSIG(status))
                 : WEXITSTATUS(status) ? fmt::format("exit {}", WEXITSTATUS(status))
                                       : std::string(message(ranks().begin + static_cast<int64_t>(i)));
    }
    return texts;
  }

 private:
  static constexpr int64_t MessageBytes = 4096;

  auto message(int64_t rank) const -> char* {
    return reinterpret_cast<char*>(memory_ + num_ranks() * BufferBytes + (rank - ranks().begin) * MessageBytes);
  }

  ControlBlock::Members members_;
  std::unique_ptr<ControlBlock> block_;
  std::byte* memory_ = nullptr;
  size_t memory_bytes_ = 0;
};

inline auto ToText(ControlBlock::Members members) -> std::string {
  return members == ControlBlock::Members::Threads ? "threads" : "processes";
}

}  // namespace shardc
