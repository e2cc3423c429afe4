// What the elements of a plan's parameter begin with.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "compiler/expr/element_program.h"
#include "compiler/expr/expr.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Nothing where the init rule is a formula.
/// Requires: the rule reads.
auto InitDistribution(const Parameter& parameter) -> std::optional<Distribution>;

/// The parameters of a plan as rules see them, by name; each is read when it is asked for.
class InitSources {
 public:
  /// Requires: the plan outlives it; its rules read.
  explicit InitSources(const Plan& plan) : plan_(plan) {}

  /// Null where there is none.
  auto Find(std::string_view name) -> const ElementSource*;

 private:
  const Plan& plan_;
  std::map<std::string, ElementSource, std::less<>> sources_;
};

}  // namespace shardc
