// restore_scalars. No constraints.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::RestoreScalars::Facts{.sections = {SectionKind::Restore},
                                                  .state = StateUse::RestoreScalars};

auto Shape(const op::RestoreScalars&, const Plan&) -> std::vector<ValueType> { return {}; }
auto Verify(const op::RestoreScalars&, const Plan&, OpCheck&) -> void {}
}  // namespace shardc
