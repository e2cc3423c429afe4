// A loop whose passes have nothing to do with each other, on the cores of this process.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "compiler/base/processor.h"

namespace shardc {

/// Calls body(i) for each i below `count`, in any order.
template <class Body>
auto InParallel(size_t count, const Body& body) -> void {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      body(i);
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(count, static_cast<size_t>(NumCores())); ++i) {
    threads.emplace_back(work);
  }
  work();
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace shardc
