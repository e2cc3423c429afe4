// save_commit. No constraints.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::SaveCommit::Facts{.sections = {SectionKind::Save}, .state = StateUse::CommitSave};

auto Shape(const op::SaveCommit&, const Plan&) -> std::vector<ValueType> { return {}; }
auto Verify(const op::SaveCommit&, const Plan&, OpCheck&) -> void {}
}  // namespace shardc
