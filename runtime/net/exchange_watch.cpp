#include "runtime/net/c10d_headers.h"

#include <chrono>
#include <utility>

#include "compiler/base/waited_time.h"
#include "runtime/net/exchange_watch.h"

namespace shardc {

ExchangeWatch::ExchangeWatch(Seconds timeout) : timeout_(timeout), thread_([this] { Run(); }) {}

ExchangeWatch::~ExchangeWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

auto ExchangeWatch::Begin() -> void {
  const std::lock_guard lock(mutex_);
  ++exchange_;
}

auto ExchangeWatch::SetCurrent(c10d::Work* work) -> void {
  const std::lock_guard lock(mutex_);
  current_ = work;
}

auto ExchangeWatch::Wait(c10d::Work& work) -> bool {
  // A century: longer than any timeout. 0 would mean Gloo's own default.
  constexpr std::chrono::hours Forever(24 * 365 * 100);
  struct Scope {
    ExchangeWatch& watch;
    ~Scope() { watch.SetCurrent(nullptr); }
  };
  SetCurrent(&work);
  const Scope scope{*this};
  return work.wait(Forever);
}

auto ExchangeWatch::Run() -> void {
  constexpr std::chrono::milliseconds LookEvery{200};
  const std::chrono::duration<double> longest(timeout_.value);
  uint64_t seen = 0;
  WaitedTime waited;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, LookEvery, [&] { return ends_; })) {
    const auto so_far = waited.Look();
    if (exchange_ != seen) {
      seen = exchange_;
      waited.Restart();
    } else if (current_ != nullptr && so_far >= longest) {
      // Once: Gloo would keep a second call for the next wait, which closes the connections.
      std::exchange(current_, nullptr)->abort();
    }
  }
}

}  // namespace shardc
