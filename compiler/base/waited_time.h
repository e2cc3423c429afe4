// How long something has been waited for.
#pragma once

#include <algorithm>
#include <chrono>

namespace shardc {

/// Time that one look after another has counted. A gap between two looks counts as LongestGap at most: if it was
/// longer, this process was stopped, and the whole job with it (Ctrl-Z, a scheduler's suspend).
class WaitedTime {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds LongestGap{1};

  explicit WaitedTime(Clock::time_point begin = Clock::now()) : looked_(begin) {}

  /// Counts the time since the last look. Returns all that was counted.
  auto Look(Clock::time_point now = Clock::now()) -> Clock::duration {
    waited_ += std::min<Clock::duration>(now - looked_, LongestGap);
    looked_ = now;
    return waited_;
  }
  /// Counts from the last look on.
  auto Restart() -> void { waited_ = {}; }

 private:
  Clock::time_point looked_;
  Clock::duration waited_{};
};

}  // namespace shardc
