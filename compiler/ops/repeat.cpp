// repeat. Its count is a matter of the plan's structure.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Repeat::Facts{.sections = SectionSet::All()};

auto Shape(const op::Repeat&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::Repeat&, const Plan&, OpCheck&) -> void {}

}  // namespace shardc
