// What the weights of a mixture come to at a step: each source's share of the step's samples, in whole units.
//
// A share is weight / the sum of all weights. Weights are doubles that have the same bits everywhere, each is divided
// by the largest first, so that sums stay finite, and shares are rounded down to units; what is missing then goes to
// the largest share, the first of equal ones. So shares are exact sums of the step, and the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/expr/step_evaluator.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Shares are counted in 2^-32 of a sample.
constexpr int SampleUnitBits = 32;
constexpr int64_t SampleUnit = int64_t{1} << SampleUnitBits;
/// The most samples per step whose units fit 64 bits.
constexpr int64_t MostMixedSamples = int64_t{1} << 30;

class SampleShares {
 public:
  /// Requires: a mixture; 1 <= samples_per_step <= MostMixedSamples; steps >= 0.
  /// Errors: ExitCode::RecipeRejected: a weight that does not read.
  static auto Create(const DataSource& data, int64_t samples_per_step, RunSteps steps) -> ErrorOr<SampleShares>;

  auto num_sources() const -> size_t { return names_.size(); }
  auto samples_per_step() const -> int64_t { return samples_per_step_; }
  /// Returns the step from which on shares stay as they are: 0 if no weight is over `step`, else the run's last. Steps
  /// after the run count as its last.
  auto last_change() const -> int64_t { return last_change_; }

  /// Writes the units of each source at a step, which sum to samples_per_step * SampleUnit.
  /// Errors: ExitCode::RecipeRejected: a weight that has no value, is negative, or 0 as all others are, with source,
  ///   step and value.
  auto At(int64_t step, std::vector<int64_t>& units) -> Status;

 private:
  SampleShares() = default;

  std::vector<std::string> names_;
  std::vector<StepEvaluator> weights_;
  std::vector<double> values_;
  int64_t samples_per_step_ = 0;
  int64_t last_change_ = 0;
};

}  // namespace shardc
