// A schedule at one step after another. What does not depend on the step is computed once.
#pragma once

#include <cstdint>
#include <memory>

#include "compiler/base/run_steps.h"
#include "compiler/expr/expr.h"

namespace shardc {

class Evaluator;

/// Not safe to use from two threads at once.
class StepEvaluator {
 public:
  /// Requires: a number of kind Schedule; 0 <= steps.
  StepEvaluator(Expr schedule, RunSteps steps);
  ~StepEvaluator();
  StepEvaluator(StepEvaluator&& other) noexcept;
  auto operator=(StepEvaluator&& other) noexcept -> StepEvaluator&;

  /// Returns true if it has one value for all steps.
  auto is_constant() const -> bool;

  /// Returns what EvaluateNumber returns for this step of the run, with the same errors.
  /// Cost: about 10 ns for each operation that depends on the step.
  auto At(int64_t step) -> ExprResult<double>;

 private:
  /// The evaluator points into it, so it stays where it is.
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns number i of n whole numbers from 0 to last, evenly spread: the steps that are looked at if not all are.
/// Requires: 0 <= i < n.
inline auto Spread(int64_t i, int64_t n, int64_t last) -> int64_t { return n == 1 ? 0 : i * last / (n - 1); }

}  // namespace shardc
