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

  /// What counts of a gap.
  static auto Counted(Clock::duration gap) -> Clock::duration { return std::min<Clock::duration>(gap, LongestGap); }

  explicit WaitedTime(Clock::time_point begin = Clock::now()) : looked_(begin) {}

  /// Counts the time since the last look. Returns all that was counted.
  auto Look(Clock::time_point now = Clock::now()) -> Clock::duration {
    waited_ += Counted(now - looked_);
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
