// Calls that may never return, with a bound on how long the caller waits for them. c10d's client waits without one for
// most answers of the store, so a host that is silent would hang its callers for ever.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace shardc {

/// Makes calls one after another on a thread of its own.
class CallThread {
 public:
  CallThread();
  CallThread(const CallThread&) = delete;
  /// A thread that is in a call stays there, and ends after it.
  ~CallThread();

  /// True: the call is over. False: it was not at `deadline`, or when `goes_on`, which is asked ten times a second,
  /// said no. The deadline moves by the time in which this process did not run (WaitedTime). The call goes on then, and
  /// there are no further ones. Requires: `call` owns what it uses, and throws nothing.
  auto Run(std::function<void()> call, std::chrono::steady_clock::time_point deadline,
           const std::function<bool()>& goes_on) -> bool;
  /// By how much the deadlines of all calls so far have moved.
  auto moved() const -> std::chrono::steady_clock::duration { return moved_; }

 private:
  struct Shared;
  static auto Work(const std::shared_ptr<Shared>& shared) -> void;

  std::shared_ptr<Shared> shared_;
  /// A call was given up.
  bool is_stuck_ = false;
  std::chrono::steady_clock::duration moved_{};
};

}  // namespace shardc
