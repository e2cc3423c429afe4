// end_repeat. No constraints of its own: nesting is the verifier's.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::EndRepeat::Facts{.sections = SectionSet::All()};

auto Shape(const op::EndRepeat&, const Plan&) -> std::vector<ValueType> { return {}; }
auto Verify(const op::EndRepeat&, const Plan&, OpCheck&) -> void {}
}  // namespace shardc
