#include "runtime/launch/stop_signals.h"

#include <algorithm>

namespace shardc {

// The stop flag of this process's job, for its signal handler.
static std::atomic<bool>* handler_stop_flag = nullptr;
static std::atomic<int> handler_interrupts = 0;

extern "C" {
static void HandleStopSignal(int signal) {
  if (signal == SIGINT && ++handler_interrupts > 1) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
    return;
  }
  handler_stop_flag->store(true);
}
}

/// Returns the signals that ask for a stop. A terminal that goes away sends SIGHUP; nohup has it ignored, and then it
/// is ignored here too.
static auto StopSignals() -> std::vector<int> {
  std::vector<int> signals{SIGTERM, SIGUSR1, SIGINT};
  struct sigaction action {};
  if (sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
    signals.push_back(SIGHUP);
  }
  return signals;
}

static auto SetOf(const std::vector<int>& signals) -> sigset_t {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    sigaddset(&set, signal);
  }
  return set;
}

auto CatchStopSignals(std::atomic<bool>& stop_flag) -> void {
  handler_stop_flag = &stop_flag;
  const std::vector<int> signals = StopSignals();
  struct sigaction action {};
  action.sa_handler = HandleStopSignal;
  action.sa_flags = SA_RESTART;
  action.sa_mask = SetOf(signals);
  for (const int signal : signals) {
    sigaction(signal, &action, nullptr);
  }
  sigset_t blocked = SetOf(signals);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
}

auto IgnoreStopSignals() -> void {
  for (const int signal : StopSignals()) {
    std::signal(signal, SIG_IGN);
  }
}

SignalScope::SignalScope() : stop_signals_(StopSignals()), set_(SetOf(stop_signals_)) {
  sigaddset(&set_, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &set_, &mask_before_);
  // With SIGCHLD ignored (inherited from a parent that does) no exit status would be left to wait for.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &child_before_);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, &pipe_before_);
  sigaction(SIGXFSZ, &action, &file_size_before_);
}

SignalScope::~SignalScope() {
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  sigaction(SIGXFSZ, &file_size_before_, nullptr);
  sigaction(SIGCHLD, &child_before_, nullptr);
  // One for each child may be pending still.
  const timespec now{};
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  while (sigtimedwait(&child, nullptr, &now) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

auto SignalScope::Next() const -> int {
  const timespec longest{.tv_sec = 0, .tv_nsec = 100'000'000};
  const int signal = sigtimedwait(&set_, nullptr, &longest);
  return signal > 0 ? signal : 0;
}

auto SignalScope::HasStop() const -> bool {
  sigset_t waiting;
  sigpending(&waiting);
  return std::ranges::any_of(stop_signals_, [&](int signal) { return sigismember(&waiting, signal) == 1; });
}

auto SignalScope::TakeStop() const -> bool {
  const timespec now{};
  const int signal = sigtimedwait(&set_, nullptr, &now);
  return signal > 0 && AsksForStop(signal);
}

auto SignalScope::AsksForStop(int signal) const -> bool {
  return std::find(stop_signals_.begin(), stop_signals_.end(), signal) != stop_signals_.end();
}

auto HoldSignals() -> const SignalScope& {
  static const auto* const signals = new SignalScope;
  return *signals;
}

auto StopsBetweenWaits() -> std::function<Status()> {
  return [&signals = HoldSignals()]() -> Status {
    return signals.HasStop()
               ? Status(Fail(ExitCode::Preempted, "stopped by a signal before the ranks began, with nothing to save"))
               : Status(Success{});
  };
}

}  // namespace shardc
