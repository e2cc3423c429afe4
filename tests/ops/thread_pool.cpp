// The compute threads: each task is done once, whoever does it, and no thread that is late is waited for.
#include "runtime/kernels/machine/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

namespace shardc {
namespace {

/// How often each of `count` tasks was done, and by which slot last.
struct TaskCounts {
  explicit TaskCounts(int64_t count) : times(static_cast<size_t>(count)), slots(static_cast<size_t>(count)) {}
  auto Do(int64_t task, int64_t slot) -> void {
    times[static_cast<size_t>(task)].fetch_add(1, std::memory_order_relaxed);
    slots[static_cast<size_t>(task)].store(slot, std::memory_order_relaxed);
  }
  auto OfSlot(int64_t slot) const -> int64_t { return std::count(slots.begin(), slots.end(), slot); }

  std::vector<std::atomic<int>> times;
  std::vector<std::atomic<int64_t>> slots;
};

auto RunCounted(ThreadPool& pool, TaskCounts& counts, int64_t threads) -> void {
  pool.Run(static_cast<int64_t>(counts.times.size()), threads, [&](int64_t slot, Tasks& tasks) {
    ASSERT_LT(slot, threads);
    for (int64_t task = tasks.Next(); task >= 0; task = tasks.Next()) {
      counts.Do(task, slot);
    }
    EXPECT_EQ(tasks.Next(), -1);
  });
}

TEST(ThreadPool, EachTaskIsDoneOnce) {
  ThreadPool pool;
  for (const int64_t count : {1, 2, 3, 7, 1000}) {
    for (const int64_t threads : {1, 2, 3, 8, 2}) {
      TaskCounts counts(count);
      RunCounted(pool, counts, threads);
      for (const auto& times : counts.times) {
        EXPECT_EQ(times.load(), 1) << count << " tasks, " << threads << " threads";
      }
    }
  }
}

// Works that are so short that threads come late to most of them.
TEST(ThreadPool, LateThreadsTakeNothingOfAnotherWork) {
  ThreadPool pool;
  for (int round = 0; round < 50'000; ++round) {
    std::atomic<int64_t> sum{0};
    const int64_t count = 1 + round % 5;
    // The body of each round is another one, at the same place of the stack.
    pool.Run(count, 3, [&sum, round](int64_t, Tasks& tasks) {
      for (int64_t task = tasks.Next(); task >= 0; task = tasks.Next()) {
        sum.fetch_add(round + task, std::memory_order_relaxed);
      }
    });
    ASSERT_EQ(sum.load(), count * round + count * (count - 1) / 2) << "round " << round;
  }
}

TEST(ThreadPool, AThreadThatIsHeldUpHoldsUpOneTask) {
  ThreadPool pool;
  // Both threads are there.
  pool.RunOnEach(2, [](int64_t, int64_t slots) { ASSERT_EQ(slots, 2); });
  TaskCounts counts(64);
  std::atomic<int64_t> done_by_caller{0};
  pool.Run(64, 2, [&](int64_t slot, Tasks& tasks) {
    for (int64_t task = tasks.Next(); task >= 0; task = tasks.Next()) {
      counts.Do(task, slot);
      if (slot == 1) {
        // Until the caller has done all others.
        while (done_by_caller.load() < 63) {
          std::this_thread::yield();
        }
      } else {
        done_by_caller.fetch_add(1);
        if (done_by_caller.load() == 1) {
          // Until the other has one.
          while (counts.slots[63].load() == 0) {
            std::this_thread::yield();
          }
        }
      }
    }
  });
  EXPECT_EQ(counts.OfSlot(0), 63);
  EXPECT_EQ(counts.slots[63].load(), 1) << "odd slots take from the end";
}

TEST(ThreadPool, AThreadThatSleptTakesPart) {
  ThreadPool pool;
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> present{0};
    pool.Run(2, 2, [&](int64_t, Tasks& tasks) {
      while (tasks.Next() >= 0) {
        present.fetch_add(1);
        // Each waits for the other inside its task.
        while (present.load() < 2) {
          std::this_thread::yield();
        }
      }
    });
    EXPECT_EQ(present.load(), 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(ThreadPool, RunOnEachRunsOnceOnEachSlot) {
  ThreadPool pool;
  for (int round = 0; round < 300; ++round) {
    const int64_t threads = 1 + round % 4;
    TaskCounts counts(4);
    pool.RunOnEach(threads, [&](int64_t slot, int64_t slots) {
      EXPECT_EQ(slots, threads);
      counts.Do(slot, slot);
    });
    for (int64_t slot = 0; slot < 4; ++slot) {
      ASSERT_EQ(counts.times[static_cast<size_t>(slot)].load(), slot < threads ? 1 : 0);
    }
    TaskCounts of_run(3);
    RunCounted(pool, of_run, 2);
    EXPECT_EQ(of_run.times[2].load(), 1);
  }
}

TEST(ThreadPool, WhatABodyThrowsReachesTheCaller) {
  ThreadPool pool;
  for (const int64_t thrower : {0, 1}) {
    std::atomic<int> at_work{0};
    const auto body = [&](int64_t slot, Tasks& tasks) {
      while (tasks.Next() >= 0) {
        at_work.fetch_add(1);
        // Both threads have a task.
        while (at_work.load() < 2) {
          std::this_thread::yield();
        }
        if (slot == thrower) {
          throw std::runtime_error("slot " + std::to_string(slot));
        }
      }
    };
    try {
      pool.Run(1000, 2, body);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "slot " + std::to_string(thrower));
    }
    EXPECT_THROW(pool.RunOnEach(2, [&](int64_t slot, int64_t) { slot == thrower ? throw std::bad_alloc() : void(); }),
                 std::bad_alloc);
    // The pool continues.
    TaskCounts counts(100);
    RunCounted(pool, counts, 2);
    for (const auto& times : counts.times) {
      EXPECT_EQ(times.load(), 1);
    }
  }
}

}  // namespace
}  // namespace shardc
