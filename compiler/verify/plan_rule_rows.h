// What each rule of the verifier and each constraint of an op asks of a plan, for help and docs: the rows of
// schemas/plan_rules.def and schemas/op_constraints.def.
#pragma once

#include <string_view>
#include <vector>

namespace shardc {

struct PlanRuleRow {
  /// "read-undefined", "matmul-c1": what a finding has in brackets.
  std::string_view label;
  /// The op whose constraint it is; empty for a rule of the verifier.
  std::string_view mnemonic;
  std::string_view help;
};

/// Returns the rules of the verifier, then the constraints by op.
auto PlanRuleRows() -> const std::vector<PlanRuleRow>&;

}  // namespace shardc
