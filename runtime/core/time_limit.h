// When a launch has to begin its last save, so that the save is committed before the time of the launch is over.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "compiler/base/units.h"

namespace shardc {

/// Rank 0 keeps it; the op `control` takes its word to the others.
class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;

  TimeLimit() = default;
  /// Takes the end of the launch. `first_save`: the time that the first save may take, until one was made.
  TimeLimit(Clock::time_point end, Seconds first_save) : end_(end), save_(first_save) {}

  /// Notes the time of one step, with evaluations and whatever comes after it, or of one save.
  auto NoteStep(Seconds seconds) -> void { step_ = std::max(step_, seconds); }
  auto NoteSave(Seconds seconds) -> void {
    save_ = has_saved_ ? std::max(save_, seconds) : seconds;
    has_saved_ = true;
  }

  /// Returns true if the step that begins now is the last one. It and the save may take half as long again as the
  /// longest so far, and the processes take up to a second to agree on the end and to be gone.
  auto IsNear(Clock::time_point now = Clock::now()) const -> bool {
    constexpr double Allowance = 1.5;
    constexpr Seconds End{1};
    const std::chrono::duration<double> needed(Allowance * (step_.value + save_.value) + End.value);
    return end_ && now + needed >= *end_;
  }

 private:
  std::optional<Clock::time_point> end_;
  Seconds step_{0};
  Seconds save_{0};
  bool has_saved_ = false;
};

}  // namespace shardc
