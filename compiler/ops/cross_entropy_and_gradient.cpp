// cross_entropy_and_gradient. C1: logits are f32 or bf16, targets i32 of their leading dims. C2: count and loss are
// f64[1]. C3: dlogits is of the type and the bytes of logits. C4: loss_onto is the same bytes as loss.
#include "compiler/ops/op_support.h"
#include "compiler/ops/parts.h"

namespace shardc {

constinit const OpFacts op::CrossEntropyAndGradient::Facts{
    .sections = {SectionKind::Step}, .threads = {WorkCut::Rows, "logits"}, .is_loss = true};

auto Shape(const op::CrossEntropyAndGradient& op, const Plan& plan) -> std::vector<ValueType> {
  return {{DType::F64, {1}}, TypeOf(plan, op.logits)};
}

auto ScratchBytes(const op::CrossEntropyAndGradient& op, const Plan& plan) -> Bytes {
  return ScratchOnCuda(plan, SizeOf(DType::F64) * ElementsOf(plan, op.targets));
}

auto Verify(const op::CrossEntropyAndGradient& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType logits = TypeOf(plan, op.logits);
  if (!check.Expect(!logits.shape.empty(), "cross_entropy_and_gradient-c1"_rule, "logits have no dims")) {
    return;
  }
  const ValueType number{DType::F64, {1}};
  ExpectComputed(check, logits.dtype, "logits", "cross_entropy_and_gradient-c1"_rule);
  ExpectType(check, plan, op.targets, {DType::I32, LeadingDims(plan, op.logits)}, "targets",
             "cross_entropy_and_gradient-c1"_rule);
  ExpectType(check, plan, op.count, number, "count", "cross_entropy_and_gradient-c2"_rule);
  ExpectType(check, plan, op.loss, number, "loss", "cross_entropy_and_gradient-c2"_rule);
  ExpectType(check, plan, op.dlogits, logits, "dlogits", "cross_entropy_and_gradient-c3"_rule);
  ExpectSameBytes(check, plan, op.dlogits, op.logits, "cross_entropy_and_gradient-c3"_rule);
  ExpectSameBytes(check, plan, op.loss, op.loss_onto, "cross_entropy_and_gradient-c4"_rule);
}

auto Parts(const op::CrossEntropyAndGradient& op, PartsContext& context) -> void {
  const ValueId lse = context.New(op.targets, {DType::F32, LeadingDims(context.plan(), op.logits)});
  context.Emit(op::CrossEntropy{.logits = op.logits,
                                .targets = op.targets,
                                .loss = op.loss,
                                .loss_onto = op.loss_onto,
                                .lse = lse,
                                .scratch = {},
                                .head = op.head},
               Phase::Forward);
  context.Emit(op::CrossEntropyBackward{.logits = op.logits,
                                        .targets = op.targets,
                                        .lse = lse,
                                        .count = op.count,
                                        .dlogits = op.dlogits,
                                        .vocab_axes = {},
                                        .head = op.head});
}

}  // namespace shardc
