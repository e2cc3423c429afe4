// How a rank waits at a barrier of a control block, and what it looks at meanwhile: whether the barrier is open,
// whether a rank has failed, whether the missing ranks live, and whether the time is over.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <ctime>

#include "compiler/base/processor.h"
#include "compiler/base/text/joined.h"
#include "compiler/base/waited_time.h"
#include "runtime/control/control_block.h"
#include "runtime/control/control_block_words.h"

namespace shardc {

using Clock = std::chrono::steady_clock;

/// A barrier of 2 ranks takes 0.34 us where both are there (2 cores of an EPYC, November 2026, chrt -r 10 tests_bench
/// --benchmark_filter=comm/barrier/2), a sleep and a wake-up 20 us: longer waits are cheaper asleep.
static constexpr auto SpinTime = std::chrono::microseconds(20);
static constexpr auto LookEvery = std::chrono::milliseconds(50);
/// The launcher hears of a death first and says how it came about; this is for when it does not.
static constexpr auto AskProcAfter = std::chrono::milliseconds(250);

/// State of one wait.
struct ControlBlock::Patience {
  Clock::time_point began = Clock::now();
  Clock::time_point asked_proc = began;
  WaitedTime waited = WaitedTime(began);
  bool warned = false;
  /// By index in the group: position at the last look, and since when.
  std::vector<uint64_t> positions;
  std::vector<Clock::time_point> since;
};

static auto FutexWait(std::atomic<uint32_t>& word, uint32_t expected, std::chrono::nanoseconds longest) -> void {
  const timespec time{.tv_sec = static_cast<time_t>(longest.count() / 1'000'000'000),
                      .tv_nsec = static_cast<long>(longest.count() % 1'000'000'000)};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, expected, &time, nullptr, 0);
}

static auto FutexWakeAll(std::atomic<uint32_t>& word) -> void {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

auto ControlBlock::WakeAll() -> void {
  // Sleepers look at the failure when they wake.
  for (size_t i = 0; i < num_barriers_; ++i) {
    FutexWakeAll(barriers_[i].generation);
  }
}

auto ControlBlock::Barrier(const Group& group, int64_t rank, const WaitOptions& options) -> Status {
  RETURN_IF_ERROR(Listen(rank));
  if (group.ranks.size() == 1) {
    return Success{};
  }
  BarrierWords& barrier = barriers_[group.barrier];
  // Cannot change before this rank has arrived.
  const uint32_t generation = barrier.generation.load(std::memory_order_acquire);
  WordsOf(rank).arrival.store((static_cast<uint64_t>(group.barrier + 1) << 32) | generation, std::memory_order_relaxed);
  if (barrier.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == group.ranks.size()) {
    barrier.arrived.store(0, std::memory_order_relaxed);
    barrier.generation.store(generation + 1, std::memory_order_seq_cst);
    if (barrier.sleepers.load(std::memory_order_seq_cst) != 0) {
      FutexWakeAll(barrier.generation);
    }
    return Success{};
  }
  return Wait(group, rank, generation, options);
}

auto ControlBlock::Wait(const Group& group, int64_t rank, uint32_t generation, const WaitOptions& options) -> Status {
  BarrierWords& barrier = barriers_[group.barrier];
  const auto is_open = [&] { return barrier.generation.load(std::memory_order_acquire) != generation; };
  if (spin_) {
    constexpr int LooksPerClock = 32;
    const auto end = Clock::now() + SpinTime;
    do {
      for (int i = 0; i < LooksPerClock; ++i) {
        if (is_open()) {
          return Success{};
        }
        Pause();
      }
      // The missing rank may be waiting for this very core: without this a barrier of 2 ranks takes 57 us, not 7.5, on
      // 2 cores with 6 processes (2 cores of an EPYC, November 2026, tests_bench --benchmark_filter=comm/barrier/2).
      sched_yield();
    } while (Clock::now() < end);
  }
  Patience patience;
  while (!is_open()) {
    barrier.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (block_->failure.load(std::memory_order_seq_cst) == 0) {
      FutexWait(barrier.generation, generation, LookEvery);
    }
    barrier.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (is_open()) {
      break;
    }
    // A peer that looks missing may have opened the barrier meanwhile and continued.
    if (auto status = Inspect(group, rank, generation, options, patience); !status && !is_open()) {
      return status;
    }
  }
  return Success{};
}

auto ControlBlock::IsMissing(const Group& group, int64_t rank, uint32_t generation) const -> bool {
  const uint64_t here = (static_cast<uint64_t>(group.barrier + 1) << 32) | generation;
  return WordsOf(rank).arrival.load(std::memory_order_relaxed) != here;
}

/// Looks now and then for a reason to end a wait: a failure, missing ranks that are gone, the end of its time.
auto ControlBlock::Inspect(const Group& group, int64_t rank, uint32_t generation, const WaitOptions& options,
                           Patience& patience) -> Status {
  if (const auto failure = FirstFailure()) {
    return Hear(rank, fmt::format("{} (axis {})", FailureText(*failure), group.name));
  }
  const auto now = Clock::now();
  if (patience.positions.empty()) {
    patience.positions.assign(group.ranks.size(), 0);
    patience.since.assign(group.ranks.size(), patience.began);
  }
  const bool ask_proc = place_.members == Members::Processes && now - patience.asked_proc >= AskProcAfter;
  if (ask_proc) {
    patience.asked_proc = now;
  }
  for (size_t i = 0; i < group.ranks.size(); ++i) {
    const int64_t peer = group.ranks[i];
    const uint64_t position = WordsOf(peer).position.load(std::memory_order_relaxed);
    if (position != patience.positions[i]) {
      patience.positions[i] = position;
      patience.since[i] = now;
    }
    if (peer == rank || !IsMissing(group, peer, generation)) {
      continue;
    }
    const bool gone = ask_proc && IsGone(peer);
    FAIL_IF(StateOf(peer) == RankState::Finished, ExitCode::Environment,
            "rank {} has ended before this op (axis {}), {}", peer, group.name, WhereIs(peer));
    if (gone) {
      MarkFailed(peer, ExitCode::Environment, -1);
      return Hear(rank, fmt::format("{} (axis {})", FailureText(*FirstFailure()), group.name));
    }
  }
  const Seconds waited{std::chrono::duration<double>(patience.waited.Look(now)).count()};
  FAIL_IF(waited >= options.timeout, ExitCode::Environment, "timed out after {:g} s (axis {}), waiting for {}",
          options.timeout.value, group.name, MissingText(group, rank, generation, patience));
  if (waited >= options.slow_after && !patience.warned && options.warn) {
    patience.warned = true;
    options.warn(fmt::format("has waited {:.0f} s (axis {}) for {}", waited.value, group.name,
                             MissingText(group, rank, generation, patience)));
  }
  return Success{};
}

auto ControlBlock::MissingText(const Group& group, int64_t rank, uint32_t generation, const Patience& patience) const
    -> std::string {
  constexpr size_t MostNamed = 4;
  std::vector<std::string> texts;
  for (size_t i = 0; i < group.ranks.size(); ++i) {
    const int64_t peer = group.ranks[i];
    if (peer == rank || !IsMissing(group, peer, generation)) {
      continue;
    }
    const double still = std::chrono::duration<double>(Clock::now() - patience.since[i]).count();
    texts.push_back(fmt::format("rank {}, {}, there for {:.0f} s", peer, WhereIs(peer), still));
  }
  return Listed(texts, MostNamed, "; ", "; and ");
}

}  // namespace shardc
