// increment. C1: the scalar is state, or a flag.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Increment::Facts{
    .sections = {SectionKind::Step}, .may_be_left_out = true, .scalars = {{{"scalar", ScalarEffect::Add}}}};

auto Shape(const op::Increment&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::Increment& op, const Plan& plan, OpCheck& check) -> void {
  const Scalar& scalar = plan.scalars[op.scalar];
  check.Expect(scalar.kind == ScalarKind::State || scalar.kind == ScalarKind::Flag, "increment-c1"_rule,
               "{} is a {} scalar, expected state or flag", scalar.name, ToText(scalar.kind));
}

}  // namespace shardc
