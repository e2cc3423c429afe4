// adamw. C1: gradient, parameter, exp_avg and exp_avg_sq are slices of the sub-vector, of f32 and of the state's types.
// C2: factor is f64[1]. C3: lr is a schedule scalar, updates a state scalar. C4: betas lie in [0, 1), eps is over 0.
// C5: copy is a slice in the type that the sub-vector computes in, which is not the parameters' own.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Adamw::Facts{
    .sections = {SectionKind::Step},
    .lasting = {SectionKind::Step},
    .threads = {WorkCut::OwnedSegments},
    .state = StateUse::Update,
    .update = UpdatePart::Apply,
    .may_be_left_out = true,
    .dims = {.fields = {{{"gradient", "n"},
                         {"factor", "1"},
                         {"parameter", "n"},
                         {"exp_avg", "n"},
                         {"exp_avg_sq", "n"},
                         {"copy", "n"}}}},
    .scalars = {{{"lr", ScalarEffect::Read, ScalarRole::Lr}, {"updates", ScalarEffect::Read, ScalarRole::Updates}}}};

auto Shape(const op::Adamw&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::Adamw& op, const Plan& plan, OpCheck& check) -> void {
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  const ValueType slice{DType::F32, {sub_vector.length / plan.mesh.size(sub_vector.axes)}};
  const DType master = StateTypeOf(plan, sub_vector, StateRole::Parameter);
  ExpectType(check, plan, op.parameter, {master, slice.shape}, "parameter", "adamw-c1"_rule);
  for (const auto& [field, value] :
       {std::pair{"gradient", op.gradient}, std::pair{"exp_avg", op.exp_avg}, std::pair{"exp_avg_sq", op.exp_avg_sq}}) {
    ExpectType(check, plan, value, slice, field, "adamw-c1"_rule);
  }
  ExpectType(check, plan, op.factor, {DType::F64, {1}}, "factor", "adamw-c2"_rule);
  if (op.copy.valid()) {
    const DType other = master == DType::F32 ? DType::BF16 : DType::F32;
    ExpectType(check, plan, op.copy, {other, slice.shape}, "copy", "adamw-c5"_rule);
  }
  check.Expect(plan.scalars[op.lr].kind == ScalarKind::Schedule, "adamw-c3"_rule, "{} is no schedule",
               plan.scalars[op.lr].name);
  check.Expect(plan.scalars[op.updates].kind == ScalarKind::State, "adamw-c3"_rule, "{} is no state scalar",
               plan.scalars[op.updates].name);
  check.Expect(op.beta1 >= 0 && op.beta1 < 1 && op.beta2 >= 0 && op.beta2 < 1 && op.eps > 0, "adamw-c4"_rule,
               "betas are {} and {}, eps is {}", op.beta1, op.beta2, op.eps);
}

}  // namespace shardc
