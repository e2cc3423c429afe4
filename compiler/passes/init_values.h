// Which init rule applies to each parameter, and what it says with everything known put in.
#pragma once

#include <string>
#include <vector>

#include "compiler/model/forward_builder.h"
#include "compiler/passes/pass.h"

namespace shardc {

struct InitValue {
  /// "normal(0, 0.02)".
  std::string text;
  Origin origin;
};

/// One for each parameter, if there is no error: that of its [[init.rule]], else that of init.scheme. An exact name
/// beats a pattern; any rule of the recipe beats the scheme's. Errors: init-rule-missing, init-rule-duplicate,
/// init-rule-unused, init-value-domain. Warning: key-has-no-effect, for a scheme that is left no parameter.
auto ChooseInitValues(const std::vector<ParameterSpec>& specs, const ModelSizes& sizes, PassContext& context)
    -> std::vector<InitValue>;

}  // namespace shardc
