// Gives up the waits of an exchange with peers when they have taken too long. Gloo can do so too, but its clock goes on
// while a job is suspended: the host that continued first would give up the others. Gloo's clock bounds only the time
// in which members connect.
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
  /// Waits for a part of the exchange, at most 0.4 s longer than the timeout. False: it was given up. Throws what Gloo
  /// throws. Requires: one thread at a time calls this.
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
