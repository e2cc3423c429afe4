// The learning rate that torchtitan trains with, and a comparison of an expression with it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>

#include "compiler/expr/step_evaluator.h"

namespace shardc {

/// torchtitan's schedules: components/lr_scheduler.py of v0.2.2.
struct Scheduler {
  double total = 1000;
  double warmup = 200;
  std::optional<double> decay_ratio = {};
  std::string type = "linear";
  double least = 0;

  auto At(double step) const -> double {
    const double decay = decay_ratio ? std::round(total * *decay_ratio) : total - warmup;
    if (step < warmup) {
      return (step + 1) / warmup;
    }
    if (step < total + 1 - decay) {
      return 1;
    }
    const double done = std::min((step + 1 - (total + 1 - decay)) / decay, 1.0);
    const double factor = type == "linear" ? 1 - done
                          : type == "sqrt" ? 1 - std::sqrt(done)
                                           : 0.5 * (1 + std::cos(std::numbers::pi * done));
    return least + (1 - least) * factor;
  }
};

/// Compares an expression with the schedule at each of so many steps.
inline auto ExpectSchedule(const std::string& written, const Scheduler& theirs, double peak, int64_t steps = 1000)
    -> void {
  StepEvaluator ours(ParseExpr(written, ExprKind::Schedule).value, steps);
  for (int64_t step = 0; step < steps; ++step) {
    ASSERT_NEAR(ours.At(step).value, peak * theirs.At(static_cast<double>(step)), 1e-15) << written << " at " << step;
  }
}

}  // namespace shardc
