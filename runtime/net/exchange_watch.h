// Gives up the waits of an exchange with peers when they have taken too long. Gloo could do so by itself, but by a
// clock that goes on while a job is suspended: whoever continued first would give up the others.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "compiler/base/units.h"

namespace c10d {
class Work;
}

namespace shardc {

class ExchangeWatch {
 public:
  /// Bounds all waits of one exchange together.
  explicit ExchangeWatch(Seconds timeout);
  ExchangeWatch(const ExchangeWatch&) = delete;
  ~ExchangeWatch();

  /// An exchange begins.
  auto Begin() -> void;
  /// Waits for a part of the exchange. False: it was given up. Throws what Gloo throws.
  auto Wait(c10d::Work& work) -> bool;

 private:
  auto Run() -> void;
  auto SetCurrent(c10d::Work* work) -> void;

  Seconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  /// Guarded by the mutex: what is waited for, in which exchange, and whether the thread should end.
  c10d::Work* current_ = nullptr;
  uint64_t exchange_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace shardc
