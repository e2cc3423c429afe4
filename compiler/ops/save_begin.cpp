// save_begin. No constraints.
#include "compiler/ops/op_support.h"

namespace shardc {

auto Shape(const op::SaveBegin&, const Plan&) -> std::vector<ValueType> { return {}; }
auto Verify(const op::SaveBegin&, const Plan&, OpCheck&) -> void {}
auto Cost(const op::SaveBegin&, const Plan&) -> OpCost { return {}; }

}  // namespace shardc
