// The word of a work, from its high bits: 23 bits of number, 1 bit that is set where each slot has a call of its own,
// and 20 bits each of the begin and the end of the tasks that are left. Where each slot has a call, the end is the
// number of slots.
//
// A thread takes a task by changing the word, which it can only while the work has one: so what it read of the work is
// of this one, and the caller, who waits for the task, leaves it as it is. A thread that comes late finds another
// number or an empty range, and has touched nothing.
#include "runtime/kernels/machine/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <system_error>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/base/processor.h"

namespace shardc {

using Clock = std::chrono::steady_clock;

static constexpr int TaskBits = 20;
static constexpr uint64_t TaskMask = (uint64_t{1} << TaskBits) - 1;
static constexpr uint64_t EachMark = uint64_t{1} << (2 * TaskBits);
static constexpr int NumberShift = 2 * TaskBits + 1;

static auto NumberOf(uint64_t word) -> uint64_t { return word >> NumberShift; }
static auto BeginOf(uint64_t word) -> uint64_t { return (word >> TaskBits) & TaskMask; }
static auto EndOf(uint64_t word) -> uint64_t { return word & TaskMask; }

// How long a thread looks before it sleeps. It keeps its core meanwhile: Linux 6.18 takes a whole slice from a thread
// that yields, and with yields a step beside a busy neighbour took 154 ms, with 200 us of looking 135, with 2 ms 175 (2
// cores of an EPYC, tests_bench --benchmark_filter=Neighbour/two_threads_fp32, which is 82 ms alone; November 2026).
static constexpr std::chrono::microseconds LookFor{200};
// How long a thread's clock is watched to see that it does not run.
static constexpr int WatchPauses = 256;

/// True as soon as the condition holds, false if it does not for some time. Another thread may need this core
/// meanwhile.
template <class Condition>
static auto LooksUntil(const Condition& condition) -> bool {
  constexpr int LooksPerClock = 64;
  const auto end = Clock::now() + LookFor;
  do {
    for (int i = 0; i < LooksPerClock; ++i) {
      if (condition()) {
        return true;
      }
      Pause();
    }
  } while (Clock::now() < end);
  return condition();
}

auto Tasks::Next() -> int64_t {
  if (first_ >= 0) {
    return std::exchange(first_, -1);
  }
  const int64_t task = pool_->Take(work_, slot_);
  taken_ += task >= 0 ? 1 : 0;
  return task;
}

auto ThreadPool::OfThisThread() -> ThreadPool& {
  static thread_local ThreadPool pool;
  return pool;
}

ThreadPool::~ThreadPool() {
  ends_.store(true, std::memory_order_seq_cst);
  bell_.fetch_add(1, std::memory_order_seq_cst);
  bell_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

auto ThreadPool::Introduce(Member& member) -> void {
  clockid_t clock = 0;
  pthread_getcpuclockid(pthread_self(), &clock);
  member.cpu_clock.store(clock, std::memory_order_relaxed);
  member.id.store(gettid(), std::memory_order_release);
}

/// -1: the thread has ended.
static auto CpuNanoseconds(clockid_t clock) -> int64_t {
  timespec time{};
  return clock_gettime(clock, &time) == 0 ? int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec : -1;
}

/// Moves a thread (0: the calling one) to a core, and leaves it as free to be moved as it was. False where it may not
/// go there.
static auto MoveTo(pid_t id, int core) -> bool {
  cpu_set_t allowed;
  if (core < 0 || core >= CPU_SETSIZE || sched_getaffinity(id, sizeof allowed, &allowed) != 0 ||
      !CPU_ISSET(static_cast<size_t>(core), &allowed)) {
    return false;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(core), &one);
  return sched_setaffinity(id, sizeof one, &one) == 0 && sched_setaffinity(id, sizeof allowed, &allowed) == 0;
}

// Nothing else brings the two together: where another process keeps the core of the waiting thread, both other threads
// of this one may share the other core for many steps, or stand still while their mate is kept from it.
auto ThreadPool::Fetch(Member& member) -> int {
  const pid_t id = member.id.load(std::memory_order_acquire);
  const int from = member.core.load(std::memory_order_relaxed);
  const int here = sched_getcpu();
  if (id == 0 || from < 0 || from == here || fetches_.test_and_set(std::memory_order_acquire)) {
    return -1;
  }
  const clockid_t clock = member.cpu_clock.load(std::memory_order_relaxed);
  const int64_t before = CpuNanoseconds(clock);
  for (int i = 0; i < WatchPauses; ++i) {
    Pause();
  }
  bool moved = false;
  if (CpuNanoseconds(clock) == before && member.core.load(std::memory_order_relaxed) == from) {
    member.home.store(from, std::memory_order_relaxed);
    moved = MoveTo(id, here);
  }
  fetches_.clear(std::memory_order_release);
  return moved ? from : -1;
}

auto ThreadPool::Grow(int64_t threads) -> int64_t {
  if (members_.empty()) {
    Introduce(members_.emplace_back());
  }
  try {
    while (static_cast<int64_t>(threads_.size()) + 1 < threads) {
      const auto slot = static_cast<int64_t>(threads_.size()) + 1;
      if (static_cast<int64_t>(members_.size()) == slot) {
        members_.emplace_back();
      }
      threads_.emplace_back([this, slot, &self = members_.back(), &caller = members_.front()] {
        Introduce(self);
        Work(slot, self, caller);
      });
    }
  } catch (const std::system_error&) {
    // The machine gives no more: fewer threads do the same work.
  }
  return std::min(threads, static_cast<int64_t>(threads_.size()) + 1);
}

auto ThreadPool::Publish(int64_t threads, Call call, const void* body, uint64_t low) -> uint64_t {
  members_.front().core.store(sched_getcpu(), std::memory_order_relaxed);
  call_ = call;
  body_ = body;
  done_.store(0, std::memory_order_relaxed);
  most_slots_.store(threads, std::memory_order_relaxed);
  const uint64_t number = NumberOf(word_.load(std::memory_order_relaxed)) + 1;
  const uint64_t word = (number << NumberShift) | low;
  word_.store(word, std::memory_order_release);
  bell_.fetch_add(1, std::memory_order_seq_cst);
  bell_.notify_all();
  return NumberOf(word);
}

auto ThreadPool::Take(uint64_t work, int64_t slot) -> int64_t {
  uint64_t word = word_.load(std::memory_order_acquire);
  while (NumberOf(word) == work && (word & EachMark) == 0 && BeginOf(word) < EndOf(word)) {
    const bool from_begin = slot % 2 == 0;
    const uint64_t next = from_begin ? word + (uint64_t{1} << TaskBits) : word - 1;
    if (word_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_acquire)) {
      return static_cast<int64_t>(from_begin ? BeginOf(word) : EndOf(word) - 1);
    }
  }
  return -1;
}

auto ThreadPool::RunTasks(int64_t count, int64_t threads, Call call, const void* body) -> void {
  CHECK(count >= 1 && count <= MaxTasks, "{} tasks", count);
  const int64_t slots = Grow(std::min(threads, count));
  const uint64_t work = Publish(slots, call, body, static_cast<uint64_t>(count));
  const int64_t first = Take(work, 0);
  int64_t taken = 0;
  if (first >= 0) {
    Tasks tasks(this, work, 0, first);
    CallBody(0, tasks);
    taken = tasks.taken_;
  }
  AwaitDone(count - taken);
  Rethrow();
}

auto ThreadPool::RunEach(int64_t slots, Call call, const void* body) -> void {
  const uint64_t work = Publish(slots, call, body, EachMark | static_cast<uint64_t>(slots));
  Tasks none(this, work, 0, -1);
  CallBody(0, none);
  AwaitDone(slots - 1);
  Rethrow();
}

auto ThreadPool::CallBody(int64_t slot, Tasks& tasks) -> void {
  try {
    call_(body_, slot, tasks);
  } catch (...) {
    const std::lock_guard lock(thrown_mutex_);
    thrown_ = thrown_ ? thrown_ : std::current_exception();
    while (tasks.Next() >= 0) {
    }
  }
}

auto ThreadPool::Rethrow() -> void {
  // All threads are done: nobody else looks at it.
  if (thrown_) {
    std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
}

auto ThreadPool::AwaitDone(int64_t count) -> void {
  const auto is_done = [&] { return done_.load(std::memory_order_acquire) == static_cast<uint32_t>(count); };
  if (is_done() || LooksUntil(is_done)) {
    return;
  }
  for (int64_t slot = 1; slot < static_cast<int64_t>(members_.size()); ++slot) {
    Fetch(members_[static_cast<size_t>(slot)]);
  }
  members_.front().core.store(-1, std::memory_order_relaxed);
  for (;;) {
    const uint32_t done = done_.load(std::memory_order_acquire);
    if (done == static_cast<uint32_t>(count)) {
      return;
    }
    done_.wait(done, std::memory_order_acquire);
  }
}

/// What the thread of `slot` does until the pool ends.
auto ThreadPool::Work(int64_t slot, Member& self, Member& caller) -> void {
  uint64_t seen = 0;
  int own_core = -1;
  for (;;) {
    const uint32_t bell = bell_.load(std::memory_order_seq_cst);
    const auto has_news = [&] {
      return NumberOf(word_.load(std::memory_order_acquire)) != seen || ends_.load(std::memory_order_relaxed);
    };
    if (!has_news() && !LooksUntil(has_news)) {
      // The caller computes here; this thread has time to wait.
      MoveTo(0, Fetch(caller));
      bell_.wait(bell, std::memory_order_seq_cst);
      continue;
    }
    if (ends_.load(std::memory_order_relaxed)) {
      return;
    }
    int core = sched_getcpu();
    if (core != caller.core.load(std::memory_order_relaxed)) {
      own_core = core;
    } else if (MoveTo(0, own_core)) {
      // Woken on the caller's core, it would take half of it.
      core = own_core;
    }
    self.core.store(core, std::memory_order_relaxed);
    const uint64_t word = word_.load(std::memory_order_acquire);
    seen = NumberOf(word);
    JoinWork(word, slot);
    self.core.store(-1, std::memory_order_relaxed);
    MoveTo(0, self.home.exchange(-1, std::memory_order_relaxed));
  }
}

auto ThreadPool::JoinWork(uint64_t word, int64_t slot) -> void {
  if ((word & EachMark) != 0) {
    if (slot < static_cast<int64_t>(EndOf(word))) {
      Tasks none(this, NumberOf(word), slot, -1);
      CallBody(slot, none);
      done_.fetch_add(1, std::memory_order_acq_rel);
      done_.notify_one();
    }
    return;
  }
  if (slot >= most_slots_.load(std::memory_order_relaxed)) {
    return;
  }
  const int64_t first = Take(NumberOf(word), slot);
  if (first < 0) {
    return;
  }
  Tasks tasks(this, NumberOf(word), slot, first);
  CallBody(slot, tasks);
  done_.fetch_add(static_cast<uint32_t>(tasks.taken_), std::memory_order_acq_rel);
  done_.notify_one();
}

}  // namespace shardc
