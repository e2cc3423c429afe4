// reset. C1: the scalar is a flag.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Reset::Facts{
    .sections = {SectionKind::Step}, .may_be_left_out = true, .scalars = {{{"scalar", ScalarEffect::Reset}}}};

auto Shape(const op::Reset&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::Reset& op, const Plan& plan, OpCheck& check) -> void {
  const Scalar& scalar = plan.scalars[op.scalar];
  check.Expect(scalar.kind == ScalarKind::Flag, "reset-c1"_rule, "{} is a {} scalar, expected flag", scalar.name,
               ToText(scalar.kind));
}

}  // namespace shardc
