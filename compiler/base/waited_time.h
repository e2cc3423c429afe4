// How long something has been waited for.
#pragma once

#include <algorithm>
#include <chrono>

namespace shardc {

/// Time that one look after another has counted. A longer gap between two looks than LongestGap means that this process
/// did not run, as when the whole job is suspended (Ctrl-Z, a scheduler). It counts as LongestGap.
class WaitedTime {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds LongestGap{1};

  /// What does not count of a gap.
  static auto Excess(Clock::duration gap) -> Clock::duration {
    return gap - std::min<Clock::duration>(gap, LongestGap);
  }

  explicit WaitedTime(Clock::time_point begin = Clock::now()) : looked_(begin) {}

  /// Counts the time since the last look. Returns all that was counted.
  auto Look(Clock::time_point now = Clock::now()) -> Clock::duration {
    const Clock::duration gap = now - looked_;
    waited_ += gap - Excess(gap);
    looked_ = now;
    return waited_;
  }
  /// Forgets what was counted. The next look counts the time since the last one.
  auto Restart() -> void { waited_ = {}; }

 private:
  Clock::time_point looked_;
  Clock::duration waited_{};
};

}  // namespace shardc
