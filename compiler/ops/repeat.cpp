// repeat. C1: count is at least 1.
#include "compiler/ops/op_support.h"

namespace shardc {

auto Shape(const op::Repeat&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::Repeat& op, const Plan&, OpCheck& check) -> void {
  check.Expect(op.count >= 1, "repeat-c1"_rule, "count is {}", op.count);
}

auto Cost(const op::Repeat&, const Plan&) -> OpCost { return {}; }

}  // namespace shardc
