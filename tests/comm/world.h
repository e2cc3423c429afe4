// Runs a function on every rank of a mesh, as threads or as forked processes, with one shared buffer a rank.
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

#include "runtime/comm/host_communicator.h"

namespace shardc {

constexpr auto Threads = HostGroup::Members::Threads;
constexpr auto Processes = HostGroup::Members::Processes;

class World {
 public:
  static constexpr Arena SharedArena = Arena::SharedTransient;
  static constexpr int64_t BufferBytes = int64_t{1} << 20;

  World(const Mesh& mesh, HostGroup::Members members) : members_(members) {
    auto group = HostGroup::Create(mesh, members);
    CHECK(group.ok(), "{}", group.error().message);
    group_ = *std::move(group);
    const auto bytes = static_cast<size_t>(mesh.num_ranks() * (BufferBytes + MessageBytes));
    memory_bytes_ = bytes;
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    CHECK(memory_ != MAP_FAILED, "mmap");
  }
  World(const World&) = delete;
  ~World() { munmap(memory_, memory_bytes_); }

  auto group() -> HostGroup& { return *group_; }
  auto num_ranks() const -> int64_t { return group_->mesh().num_ranks(); }
  auto buffer(int64_t rank) const -> std::byte* { return memory_ + rank * BufferBytes; }
  auto SpanOf(int64_t rank, int64_t offset, int64_t bytes) const -> CommSpan {
    return {.data = buffer(rank) + offset, .bytes = bytes, .arena = SharedArena, .offset = offset};
  }

  /// Returns one text a rank: empty, or what the rank says went wrong; "signal N" for a killed process.
  auto Run(const WaitOptions& options, const std::function<std::string(HostCommunicator&)>& body)
      -> std::vector<std::string> {
    std::vector<std::string> texts(static_cast<size_t>(num_ranks()));
    const auto run_one = [&](int64_t rank) {
      std::vector<std::array<std::byte*, NumArenas>> peers(static_cast<size_t>(num_ranks()));
      for (int64_t peer = 0; peer < num_ranks(); ++peer) {
        peers[static_cast<size_t>(peer)][static_cast<size_t>(SharedArena)] = buffer(peer);
      }
      HostCommunicator comm(*group_, rank, peers, options);
      std::string text = body(comm);
      group_->Finish(rank);
      return text;
    };
    if (members_ == HostGroup::Members::Threads) {
      std::vector<std::thread> threads;
      for (int64_t rank = 0; rank < num_ranks(); ++rank) {
        threads.emplace_back([&, rank] { texts[static_cast<size_t>(rank)] = run_one(rank); });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
      return texts;
    }
    std::fflush(nullptr);
    std::vector<pid_t> pids;
    for (int64_t rank = 0; rank < num_ranks(); ++rank) {
      const pid_t pid = fork();
      CHECK(pid >= 0, "fork");
      if (pid == 0) {
        const std::string text = run_one(rank);
        std::strncpy(message(rank), text.c_str(), MessageBytes - 1);
        _exit(0);
      }
      pids.push_back(pid);
    }
    for (size_t rank = 0; rank < pids.size(); ++rank) {
      int status = 0;
      waitpid(pids[rank], &status, 0);
      texts[rank] = WIFSIGNALED(status)   ? fmt::format("signal {}", WTERMSIG(status))
                    : WEXITSTATUS(status) ? fmt::format("exit {}", WEXITSTATUS(status))
                                          : std::string(message(static_cast<int64_t>(rank)));
    }
    return texts;
  }

 private:
  static constexpr int64_t MessageBytes = 4096;

  auto message(int64_t rank) const -> char* {
    return reinterpret_cast<char*>(memory_ + num_ranks() * BufferBytes + rank * MessageBytes);
  }

  HostGroup::Members members_;
  std::unique_ptr<HostGroup> group_;
  std::byte* memory_ = nullptr;
  size_t memory_bytes_ = 0;
};

inline auto ToText(HostGroup::Members members) -> std::string {
  return members == HostGroup::Members::Threads ? "threads" : "processes";
}

}  // namespace shardc
