// Which init rule applies to each parameter, and what it says with everything known put in.
#pragma once

#include <string>
#include <vector>

#include "compiler/model/model_family.h"
#include "compiler/passes/pass.h"
#include "compiler/start/seed.h"

namespace shardc {

struct InitValue {
  /// "normal(0, 0.02)"; "seed('model.norm.weight')".
  std::string text;
  Origin origin;
};

struct InitValues {
  /// One for each parameter, if there is no error.
  std::vector<InitValue> of_parameters;
  /// Of the seed's tensors.
  TensorUses uses;
};

/// That it is loaded from the seed, if it is; else the value of its [[init.rule]], else that of init.scheme. An exact
/// name beats a pattern; any rule of the recipe beats the scheme's. Errors: init-rule-missing, init-rule-duplicate,
/// init-rule-unused, init-value-domain; those of ChooseLoaded and CheckLeftTensors. Warning: key-has-no-effect, for a
/// scheme that is left no parameter, and for a rule with the exact name of a parameter that is loaded.
auto ChooseInitValues(const ParameterSpecs& specs, const ModelSizes& sizes, PassContext& context) -> InitValues;

}  // namespace shardc
