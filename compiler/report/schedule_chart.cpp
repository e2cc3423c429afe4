// A schedule is evaluated at many steps. Each column of the chart shows one of these steps; the maximum is taken over
// all of them.

#include "compiler/report/schedule_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/base/check.h"
#include "compiler/expr/step_evaluator.h"

namespace shardc {

constexpr int64_t NumColumns = 60;
constexpr int64_t SamplesPerColumn = 16;
constexpr int NumRows = 6;

static auto Sampled(const Scalar& scalar, const RunSettings& run) -> ScheduleUse {
  const int64_t steps = run.steps;
  ScheduleUse use{.name = scalar.name, .text = scalar.expression, .steps = steps};
  auto expr = ParseExpr(scalar.expression, ExprKind::Schedule);
  CHECK(expr.ok(), "schedule `{}`", scalar.expression);
  StepEvaluator schedule(std::move(expr.value), run.schedule_steps());
  use.is_constant = schedule.is_constant();
  const int64_t num_samples = std::min(steps, NumColumns * SamplesPerColumn);
  std::vector<SchedulePoint> samples;
  for (int64_t i = 0; i < num_samples; ++i) {
    const int64_t step = Spread(i, num_samples, steps - 1);
    const auto value = schedule.At(step);
    if (!value.ok() || value.value < 0) {
      use.fault = fmt::format("at step {}: {}", step,
                              value.ok() ? fmt::format("{} is negative", value.value) : value.errors.front().message);
      break;
    }
    samples.push_back({step, value.value});
    use.most = use.most.value < value.value || i == 0 ? samples.back() : use.most;
  }
  const int64_t num_columns = std::min(steps, NumColumns);
  for (int64_t column = 0; column < num_columns; ++column) {
    const auto sample = static_cast<size_t>(Spread(column, num_columns, num_samples - 1));
    if (sample < samples.size()) {
      use.points.push_back(samples[sample]);
    }
  }
  return use;
}

auto SchedulesOf(const Plan& plan) -> std::vector<ScheduleUse> {
  std::vector<ScheduleUse> schedules;
  for (const Scalar& scalar : plan.scalars) {
    if (scalar.kind == ScalarKind::Schedule && plan.run.steps > 0) {
      schedules.push_back(Sampled(scalar, plan.run));
    }
  }
  return schedules;
}

auto ChartText(const ScheduleUse& schedule) -> std::string {
  CHECK(!schedule.points.empty(), "schedule `{}`", schedule.text);
  // The column of the most may be between two points: the top is theirs all the same.
  const double top = schedule.most.value;
  std::vector<std::string> rows(NumRows + 1, std::string(schedule.points.size(), ' '));
  rows[0] = std::string(schedule.points.size(), '-');
  for (size_t column = 0; column < schedule.points.size(); ++column) {
    const double height = top > 0 ? std::min(1.0, schedule.points[column].value / top) : 0;
    rows[static_cast<size_t>(std::lround(height * NumRows))][column] = '*';
  }
  const std::string label = fmt::format("{:.4g}", top);
  std::string text;
  for (size_t row = rows.size(); row-- > 0;) {
    const std::string left = row == rows.size() - 1 ? label : row == 0 ? "0" : "";
    std::string line = fmt::format("  {:>{}} {}{}", left, label.size(), row == 0 ? '+' : '|', rows[row]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const std::string last = std::to_string(schedule.points.back().step);
  const size_t width = schedule.points.size() > last.size() ? schedule.points.size() - last.size() : 1;
  return text + fmt::format("  {:>{}} {:<{}}{}\n", "", label.size(), " 0", std::max<size_t>(width + 1, 3), last);
}

}  // namespace shardc
