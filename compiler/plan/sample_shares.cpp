#include "compiler/plan/sample_shares.h"

#include <algorithm>
#include <cmath>

#include "compiler/base/check.h"
#include "compiler/expr/expr.h"

namespace shardc {

auto SampleShares::Create(const DataSource& data, int64_t samples_per_step, RunSteps steps) -> ErrorOr<SampleShares> {
  CHECK(data.is_mixture() && 1 <= samples_per_step && samples_per_step <= MostMixedSamples && steps.count >= 0,
        "{} sources, {} samples per step, {} steps", data.sources.size(), samples_per_step, steps.count);
  SampleShares shares;
  shares.samples_per_step_ = samples_per_step;
  for (const TokenSource& source : data.sources) {
    ExprResult<Expr> weight = ParseExpr(source.weight, ExprKind::Schedule);
    FAIL_IF(!weight.ok(), ExitCode::RecipeRejected, "the weight of {}, {}, does not read: {}", source.name,
            source.weight, weight.errors.front().message);
    shares.names_.push_back(source.name);
    shares.weights_.emplace_back(std::move(weight.value), steps);
    if (!shares.weights_.back().is_constant()) {
      shares.last_change_ = std::max<int64_t>(steps.count - 1, 0);
    }
  }
  shares.values_.resize(shares.names_.size());
  return shares;
}

auto SampleShares::At(int64_t step, std::vector<int64_t>& units) -> Status {
  const int64_t at = std::min(step, last_change_);
  double largest = 0;
  for (size_t s = 0; s < num_sources(); ++s) {
    const ExprResult<double> weight = weights_[s].At(at);
    FAIL_IF(!weight.ok(), ExitCode::RecipeRejected, "the weight of {} at step {}: {}", names_[s], at,
            weight.errors.front().message);
    FAIL_IF(weight.value < 0, ExitCode::RecipeRejected, "the weight of {} at step {} is {}; weights are 0 or more",
            names_[s], at, weight.value);
    values_[s] = weight.value;
    largest = std::max(largest, weight.value);
  }
  FAIL_IF(largest == 0, ExitCode::RecipeRejected,
          "at step {} the weights of all sources are 0: nothing is left to read", at);
  double sum = 0;
  for (double& value : values_) {
    value /= largest;
    sum += value;
  }
  const int64_t all = samples_per_step_ * SampleUnit;
  units.resize(num_sources());
  int64_t missing = all;
  for (size_t s = 0; s < num_sources(); ++s) {
    units[s] = static_cast<int64_t>(std::floor(values_[s] / sum * static_cast<double>(all)));
    missing -= units[s];
  }
  *std::max_element(units.begin(), units.end()) += missing;
  return Success{};
}

}  // namespace shardc
