// The thread is detached, and shares with its owner what both look at. Nobody can join a thread that never returns.
#include "runtime/net/call_thread.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/base/waited_time.h"
#include "runtime/net/blocked_signals.h"

namespace shardc {

struct CallThread::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> call;
  bool ends = false;
  bool has_ended = false;
};

auto CallThread::Work(const std::shared_ptr<Shared>& shared) -> void {
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&] { return shared->ends || shared->call; });
    if (!shared->call) {
      break;
    }
    lock.unlock();
    shared->call();
    lock.lock();
    shared->call = nullptr;
    shared->changed.notify_all();
  }
  shared->has_ended = true;
  shared->changed.notify_all();
}

CallThread::CallThread() : shared_(std::make_shared<Shared>()) {
  const BlockedSignals blocked;
  std::thread([shared = shared_] { Work(shared); }).detach();
}

CallThread::~CallThread() {
  std::unique_lock lock(shared_->mutex);
  shared_->ends = true;
  shared_->changed.notify_all();
  if (!is_stuck_) {
    shared_->changed.wait(lock, [&] { return shared_->has_ended; });
  }
}

auto CallThread::Run(std::function<void()> call, std::chrono::steady_clock::time_point deadline,
                     const std::function<bool()>& goes_on) -> bool {
  constexpr auto AskEvery = std::chrono::milliseconds(100);
  CHECK(!is_stuck_, "a call after one that was given up");
  std::unique_lock lock(shared_->mutex);
  shared_->call = std::move(call);
  shared_->changed.notify_all();
  const auto is_over = [&] { return !shared_->call; };
  bool is_over_now = false;
  auto looked = std::chrono::steady_clock::now();
  // After the wait in which the call ends too: it may end before this thread runs again.
  const auto move_deadline = [&] {
    const auto gap = std::chrono::steady_clock::now() - looked;
    const auto excess = gap - WaitedTime::Counted(gap);
    looked += gap;
    deadline += excess;
    moved_ += excess;
  };
  while (!is_over_now) {
    lock.unlock();
    const bool waits = goes_on() && looked < deadline;
    lock.lock();
    is_over_now = shared_->changed.wait_until(lock, waits ? std::min(deadline, looked + AskEvery) : looked, is_over);
    move_deadline();
    if (!waits) {
      break;
    }
  }
  is_stuck_ = !is_over_now;
  return is_over_now;
}

}  // namespace shardc
