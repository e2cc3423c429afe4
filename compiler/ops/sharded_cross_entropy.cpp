// sharded_cross_entropy. C1: logits are f32 or bf16, targets i32 of their leading dims. C2: parts are f32, of the
// leading dims of logits for each rank of vocab_axes. C3: loss is f64[1]. C4: lse is f32 of the leading dims of logits.
// C5: loss_onto is the same bytes as loss.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::ShardedCrossEntropy::Facts{
    .is_loss = true,
    .sums_samples = true,
    .vocabulary = {.matrix = "logits", .ids = "targets"},
    .dims = {.fields = {{{"logits", "*V"}, {"targets", "*"}, {"parts", "R*"}, {"loss", "1"}, {"lse", "*", "V"}}},
             .summed = "*V",
             .whole = "R"}};

auto Shape(const op::ShardedCrossEntropy& op, const Plan& plan) -> std::vector<ValueType> {
  return {{DType::F64, {1}}, {DType::F32, LeadingDims(plan, op.logits)}};
}

auto ScratchBytes(const op::ShardedCrossEntropy& op, const Plan& plan) -> Bytes {
  return ScratchOnCuda(plan, SizeOf(DType::F64) * ElementsOf(plan, op.targets));
}

auto Verify(const op::ShardedCrossEntropy& op, const Plan& plan, OpCheck& check) -> void {
  if (!check.Expect(!ShapeOf(plan, op.logits).empty(), "sharded_cross_entropy-c1"_rule, "logits have no dims")) {
    return;
  }
  const auto types = Shape(op, plan);
  ExpectComputed(check, plan.values[op.logits].dtype, "logits", "sharded_cross_entropy-c1"_rule);
  Dims parts = types[1].shape;
  parts.insert(parts.begin(), plan.mesh.size(op.vocab_axes));
  ExpectType(check, plan, op.targets, {DType::I32, types[1].shape}, "targets", "sharded_cross_entropy-c1"_rule);
  ExpectType(check, plan, op.parts, {DType::F32, parts}, "parts", "sharded_cross_entropy-c2"_rule);
  ExpectType(check, plan, op.loss, types[0], "loss", "sharded_cross_entropy-c3"_rule);
  ExpectType(check, plan, op.lse, types[1], "lse", "sharded_cross_entropy-c4"_rule);
  ExpectSameBytes(check, plan, op.loss, op.loss_onto, "sharded_cross_entropy-c5"_rule);
}

/// Of the logits, only those of the targets are read.
auto OwnCost(const op::ShardedCrossEntropy& op, const Plan& plan) -> OpCost {
  const Bytes rows = BytesOf(plan, op.lse);
  return {.matmul_flops = {}, .read = BytesOf(plan, op.parts) + rows * 2, .written = rows, .wires = {}};
}

auto Vjp(const op::ShardedCrossEntropy& op, VjpContext& context) -> void {
  const ValueId count = context.GradientOf(op.loss);
  context.Emit(op::CrossEntropyBackward{.logits = op.logits,
                                        .targets = op.targets,
                                        .lse = op.lse,
                                        .count = count,
                                        .dlogits = context.GradientOver(op.logits, op.logits),
                                        .vocab_axes = op.vocab_axes,
                                        .head = op.head});
}

}  // namespace shardc
