// How a schedule runs over the steps of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

struct SchedulePoint {
  int64_t step = 0;
  double value = 0;

  friend auto operator==(const SchedulePoint&, const SchedulePoint&) -> bool = default;
};

struct ScheduleUse {
  /// "lr".
  std::string name;
  /// The expression.
  std::string text;
  int64_t steps = 0;
  /// Does it depend on the step?
  bool is_constant = true;
  /// In order, evenly spread, the first and the last step among them: all steps, if they are few. Up to a fault.
  std::vector<SchedulePoint> points;
  /// The highest point of all steps that were looked at: many more than `points`, but not all of a long run.
  SchedulePoint most;
  /// The fault of the first of them that has no value, or a negative one.
  std::string fault;
};

/// Returns the schedules of a plan, evaluated as the run will.
auto SchedulesOf(const Plan& plan) -> std::vector<ScheduleUse>;

/// Returns a chart of a few lines, in ASCII. Requires: a point.
auto ChartText(const ScheduleUse& schedule) -> std::string;

}  // namespace shardc
