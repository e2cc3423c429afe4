#include "compiler/verify/plan_rule_rows.h"

namespace shardc {

auto PlanRuleRows() -> const std::vector<PlanRuleRow>& {
  static const std::vector<PlanRuleRow> rows{
#define PLAN_RULE(label, help) {label, "", help},
#include "schemas/plan_rules.def"
#define OP_CONSTRAINT(label, mnemonic, help) {label, #mnemonic, help},
#include "schemas/op_constraints.def"
  };
  return rows;
}

}  // namespace shardc
