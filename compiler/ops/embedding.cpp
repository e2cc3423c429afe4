// embedding. C1: tokens are i32. C2: weight is a matrix [V, H] of f32 or bf16. C3: y is [tokens..., H] of weight's
// element type, or f32.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Embedding::Facts{
    .threads = {WorkCut::Rows, "y"},
    .vocabulary = {.matrix = "weight", .by_rows = true, .ids = "tokens", .as_tokens = true},
    .dims = {.fields = {{{"tokens", "*"}, {"weight", "VH"}, {"y", "*H"}}}, .summed = "V"},
    .model = {{{.key = ModelKey::Hidden, .field = "weight", .dim = 1}}}};

auto Shape(const op::Embedding& op, const Plan& plan) -> std::vector<ValueType> {
  Dims shape = ShapeOf(plan, op.tokens);
  shape.push_back(ShapeOf(plan, op.weight).back());
  return {{plan.values[op.weight].dtype, shape}};
}

auto Verify(const op::Embedding& op, const Plan& plan, OpCheck& check) -> void {
  check.Expect(plan.values[op.tokens].dtype == DType::I32, "embedding-c1"_rule, "tokens are {}, expected i32",
               ToText(plan.values[op.tokens].dtype));
  if (check.Expect(ShapeOf(plan, op.weight).size() == 2, "embedding-c2"_rule, "weight is {}, expected [V, H]",
                   ToText(ShapeOf(plan, op.weight)))) {
    ExpectComputed(check, plan.values[op.weight].dtype, "weight", "embedding-c2"_rule);
    ValueType y = Shape(op, plan)[0];
    y.dtype = plan.values[op.y].dtype == DType::F32 ? DType::F32 : y.dtype;
    ExpectType(check, plan, op.y, y, "y", "embedding-c3"_rule);
  }
}

/// Only the rows that are picked move.
auto OwnCost(const op::Embedding& op, const Plan& plan) -> OpCost {
  const Bytes rows = BytesOf(plan, op.y);
  return {.matmul_flops = {}, .read = rows + BytesOf(plan, op.tokens), .written = rows, .wires = {}};
}

auto Vjp(const op::Embedding& op, VjpContext& context) -> void {
  if (!context.NeedsGradient(op.weight)) {
    return;
  }
  const auto target = context.GradientTarget(op.weight);
  context.Emit(op::EmbeddingBackward{.tokens = op.tokens,
                                     .dy = context.GradientOf(op.y),
                                     .dweight = target.value,
                                     .dweight_onto = target.onto,
                                     .vocab_axes = op.vocab_axes});
}

}  // namespace shardc
