// sgd. C1: gradient, parameter and momentum_buffer are slices of the sub-vector, of f32 and of the state's types. C2:
// factor is f64[1]. C3: lr is a schedule scalar. C4: momentum lies in [0, 1], and is over 0 with nesterov. C5: copy is
// a slice in the type that the sub-vector computes in, which is not the parameters' own. C6: there is a momentum_buffer
// exactly if momentum is not 0.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Sgd::Facts{
    .sections = {SectionKind::Step},
    .lasting = {SectionKind::Step},
    .threads = {WorkCut::OwnedSegments},
    .state = StateUse::Update,
    .update = UpdatePart::Apply,
    .may_be_left_out = true,
    .dims =
        {.fields = {{{"gradient", "n"}, {"factor", "1"}, {"parameter", "n"}, {"momentum_buffer", "n"}, {"copy", "n"}}}},
    .scalars = {{{"lr", ScalarEffect::Read, ScalarRole::Lr}}}};

auto Shape(const op::Sgd&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::Sgd& op, const Plan& plan, OpCheck& check) -> void {
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  const ValueType slice{DType::F32, {sub_vector.length / plan.mesh.size(sub_vector.axes)}};
  const DType master = StateTypeOf(plan, sub_vector, StateRole::Parameter);
  ExpectType(check, plan, op.parameter, {master, slice.shape}, "parameter", "sgd-c1"_rule);
  ExpectType(check, plan, op.gradient, slice, "gradient", "sgd-c1"_rule);
  if (op.momentum_buffer.valid()) {
    ExpectType(check, plan, op.momentum_buffer, slice, "momentum_buffer", "sgd-c1"_rule);
  }
  ExpectType(check, plan, op.factor, {DType::F64, {1}}, "factor", "sgd-c2"_rule);
  check.Expect(plan.scalars[op.lr].kind == ScalarKind::Schedule, "sgd-c3"_rule, "{} is no schedule",
               plan.scalars[op.lr].name);
  const bool is_in_range = op.momentum >= 0 && op.momentum <= 1;
  check.Expect(is_in_range, "sgd-c4"_rule, "momentum is {}", op.momentum);
  const bool is_sound = is_in_range && (op.momentum > 0 || !op.nesterov);
  check.Expect(is_sound || !is_in_range, "sgd-c4"_rule, "nesterov asks for momentum, which is 0");
  if (op.copy.valid()) {
    const DType other = master == DType::F32 ? DType::BF16 : DType::F32;
    ExpectType(check, plan, op.copy, {other, slice.shape}, "copy", "sgd-c5"_rule);
  }
  // A momentum that is none is one finding.
  check.Expect(!is_sound || op.momentum_buffer.valid() == (op.momentum != 0), "sgd-c6"_rule,
               "momentum is {}, with {} momentum_buffer", op.momentum, op.momentum_buffer.valid() ? "a" : "no");
}

}  // namespace shardc
