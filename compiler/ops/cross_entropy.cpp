// cross_entropy. C1: logits are f32 or bf16, targets i32 of their leading dims. C2: loss is f64[1]. C3: lse is f32 of
// the leading dims of logits. C4: loss_onto is the same bytes as loss.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::CrossEntropy::Facts{
    .threads = {WorkCut::Rows, "logits"},
    .is_loss = true,
    .sums_samples = true,
    .vocabulary = {.matrix = "logits", .ids = "targets"},
    .dims = {
        .fields = {{{"logits", "*V"}, {"targets", "*"}, {"loss", "1"}, {"lse", "*"}}}, .summed = "*", .whole = "V"}};

auto Shape(const op::CrossEntropy& op, const Plan& plan) -> std::vector<ValueType> {
  return {{DType::F64, {1}}, {DType::F32, LeadingDims(plan, op.logits)}};
}

auto ScratchBytes(const op::CrossEntropy& op, const Plan& plan) -> Bytes {
  return ScratchOnCuda(plan, SizeOf(DType::F64) * ElementsOf(plan, op.targets));
}

auto Verify(const op::CrossEntropy& op, const Plan& plan, OpCheck& check) -> void {
  if (!check.Expect(!ShapeOf(plan, op.logits).empty(), "cross_entropy-c1"_rule, "logits have no dims")) {
    return;
  }
  const auto types = Shape(op, plan);
  ExpectComputed(check, plan.values[op.logits].dtype, "logits", "cross_entropy-c1"_rule);
  ExpectType(check, plan, op.targets, {DType::I32, types[1].shape}, "targets", "cross_entropy-c1"_rule);
  ExpectType(check, plan, op.loss, types[0], "loss", "cross_entropy-c2"_rule);
  ExpectType(check, plan, op.lse, types[1], "lse", "cross_entropy-c3"_rule);
  ExpectSameBytes(check, plan, op.loss, op.loss_onto, "cross_entropy-c4"_rule);
}

/// The gradient of a loss sum is 1 / count, kept as the count itself: the kernel divides.
auto Vjp(const op::CrossEntropy& op, VjpContext& context) -> void {
  const ValueId count = context.GradientOf(op.loss);
  context.Emit(op::CrossEntropyBackward{.logits = op.logits,
                                        .targets = op.targets,
                                        .lse = op.lse,
                                        .count = count,
                                        .dlogits = context.GradientOver(op.logits, op.logits),
                                        .vocab_axes = {},
                                        .head = op.head});
}

}  // namespace shardc
