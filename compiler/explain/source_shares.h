// What the run takes from each source of a mixture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

struct SourceShare {
  std::string name;
  /// The expression.
  std::string weight;
  /// Of the run's samples.
  int64_t samples = 0;
  double fraction = 0;
};

struct MixtureUse {
  /// None where there is one stream.
  std::vector<SourceShare> sources;
  /// Those of a very long run are estimated.
  bool is_exact = true;
  /// What is wrong at the first step where the weights give no shares.
  std::string fault;
};

/// As the run will count (compiler/plan/run_samples.h).
auto MixtureOf(const Plan& plan) -> MixtureUse;

}  // namespace shardc
