// save_commit. No constraints.
#include "compiler/ops/op_support.h"

namespace shardc {

auto Shape(const op::SaveCommit&, const Plan&) -> std::vector<ValueType> { return {}; }
auto Verify(const op::SaveCommit&, const Plan&, OpCheck&) -> void {}
auto Cost(const op::SaveCommit&, const Plan&) -> OpCost { return {}; }

}  // namespace shardc
