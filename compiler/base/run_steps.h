// The steps of a run, as schedules see them.
#pragma once

#include <cstdint>

namespace shardc {

/// A run has `count` steps of its own. Its schedules see `first` in the first of them, where the run goes on with the
/// schedule of another one.
struct RunSteps {
  int64_t count = 0;
  int64_t first = 0;

  RunSteps() = default;
  /// Makes the steps of a run of its own; implicit, as that is what nearly all are.
  RunSteps(int64_t num_steps) : count(num_steps) {}
  RunSteps(int64_t num_steps, int64_t first_step) : count(num_steps), first(first_step) {}

  /// Returns what `steps` is in expressions.
  auto all() const -> int64_t { return first + count; }
};

}  // namespace shardc
