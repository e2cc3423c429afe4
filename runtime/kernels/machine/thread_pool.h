// The compute threads of a rank. Work is cut into tasks, and a thread that has nothing to do takes one that is left: a
// thread that the machine keeps from its core holds up the one task that it is at, no other.
//
// All that threads agree on is one word: the number of the work, and the range of tasks that nobody has taken yet. Even
// slots take tasks from its begin, odd ones from its end, so that two undisturbed threads have the same halves of the
// data in all ops, and find them in their caches. Who waits looks for some time, brings a thread of the pool that waits
// for a core to its own, and sleeps.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace shardc {

class ThreadPool;

/// The tasks that one thread takes of a work.
class Tasks {
 public:
  /// The next task, or -1: none is left.
  auto Next() -> int64_t;

 private:
  friend class ThreadPool;
  Tasks(ThreadPool* pool, uint64_t work, int64_t slot, int64_t first)
      : pool_(pool), work_(work), slot_(slot), first_(first) {}

  ThreadPool* pool_;
  uint64_t work_;
  int64_t slot_;
  /// Taken already; -1: given out.
  int64_t first_;
  int64_t taken_ = 1;
};

class ThreadPool {
 public:
  /// More tasks than this are not told apart.
  static constexpr int64_t MaxTasks = (int64_t{1} << 20) - 1;

  /// The pool that works for the calling thread; its threads are made as they are asked for, and end with the caller.
  static auto OfThisThread() -> ThreadPool&;

  ThreadPool() = default;
  ThreadPool(const ThreadPool&) = delete;
  auto operator=(const ThreadPool&) -> ThreadPool& = delete;
  ~ThreadPool();

  /// Calls body(slot, tasks) on up to `threads` threads, the calling one (slot 0) among them, with 0 <= slot < threads,
  /// each slot once at most; returns when all tasks are done. Requires: 1 <= count <= MaxTasks; body takes tasks until
  /// there are none. What a body throws, the first of several, is thrown again here when all threads are done.
  template <class Body>
  auto Run(int64_t count, int64_t threads, const Body& body) -> void {
    RunTasks(
        count, threads,
        [](const void* of, int64_t slot, Tasks& tasks) { (*static_cast<const Body*>(of))(slot, tasks); }, &body);
  }

  /// Calls body(slot, slots) once on each of `slots` threads: `threads`, or as many as the machine gives. Throws as
  /// Run.
  template <class Body>
  auto RunOnEach(int64_t threads, const Body& body) -> void {
    const int64_t slots = Grow(threads);
    const auto call = [&](int64_t slot) { body(slot, slots); };
    using Bound = decltype(call);
    RunEach(
        slots, [](const void* of, int64_t slot, Tasks&) { (*static_cast<Bound*>(of))(slot); }, &call);
  }

 private:
  friend class Tasks;
  using Call = void (*)(const void* body, int64_t slot, Tasks& tasks);

  /// What threads know of each other.
  struct Member {
    std::atomic<pid_t> id{0};
    std::atomic<clockid_t> cpu_clock{0};
    /// Where it began the tasks that it has; the caller, the last work. -1: it has none, or sleeps.
    std::atomic<int> core{-1};
    /// Where it was fetched from, and goes back to after its tasks; or -1.
    std::atomic<int> home{-1};
  };
  static auto Introduce(Member& member) -> void;

  auto RunTasks(int64_t count, int64_t threads, Call call, const void* body) -> void;
  auto RunEach(int64_t slots, Call call, const void* body) -> void;
  /// Makes threads up to `threads` in all. Returns how many there are, the calling one included.
  auto Grow(int64_t threads) -> int64_t;
  /// Begins a work whose word ends in `low`. Returns its number.
  auto Publish(int64_t threads, Call call, const void* body, uint64_t low) -> uint64_t;
  /// Returns -1 where the work has no task left, or is over.
  auto Take(uint64_t work, int64_t slot) -> int64_t;
  /// Calls the body, and notes what it throws: the tasks that it had left count as done.
  auto CallBody(int64_t slot, Tasks& tasks) -> void;
  auto AwaitDone(int64_t count) -> void;
  /// Throws again what a body threw.
  auto Rethrow() -> void;
  /// To be called by a thread that is about to sleep. Where another is at work and waits for a core, moves it to the
  /// calling one's. Returns the core that it waited for, or -1.
  auto Fetch(Member& member) -> int;
  auto Work(int64_t slot, Member& self, Member& caller) -> void;
  auto JoinWork(uint64_t word, int64_t slot) -> void;
  /// By slot. That of 0 is the caller's.
  std::deque<Member> members_;
  std::vector<std::thread> threads_;
  /// One fetches at a time: two would each take what the other sets for what was before.
  std::atomic_flag fetches_ = ATOMIC_FLAG_INIT;
  /// Number, a mark, begin, end: see thread_pool.cpp.
  alignas(64) std::atomic<uint64_t> word_{0};
  /// Changes with each work: what threads sleep on.
  std::atomic<uint32_t> bell_{0};
  std::atomic<int64_t> most_slots_{0};
  std::atomic<bool> ends_{false};
  /// Of the work at hand. They change only when no thread is at it.
  Call call_ = nullptr;
  const void* body_ = nullptr;
  /// What a body threw first.
  std::mutex thrown_mutex_;
  std::exception_ptr thrown_;
  /// Tasks done by others than the caller.
  alignas(64) std::atomic<uint32_t> done_{0};
};

}  // namespace shardc
