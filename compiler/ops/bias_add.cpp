// bias_add. C1: x has dims, bias is [H] with H the last dim of x, and y is of x's shape; all three are of one type, f32
// or bf16. C2: y is the bytes of x.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::BiasAdd::Facts{.launch = {{{.what = "columns", .field = "bias", .of_block = 32}}},
                                           .threads = {WorkCut::Rows, "x"},
                                           .dims = {.fields = {{{"x", "*H"}, {"bias", "H"}, {"y", "*H"}}}}};

auto Shape(const op::BiasAdd& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.x)}; }

auto Verify(const op::BiasAdd& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType x = TypeOf(plan, op.x);
  if (!check.Expect(!x.shape.empty(), "bias_add-c1"_rule, "x has no dims")) {
    return;
  }
  ExpectComputed(check, x.dtype, "x", "bias_add-c1"_rule);
  ExpectType(check, plan, op.bias, {x.dtype, {x.shape.back()}}, "bias", "bias_add-c1"_rule);
  ExpectType(check, plan, op.y, x, "y", "bias_add-c1"_rule);
  ExpectSameBytes(check, plan, op.y, op.x, "bias_add-c2"_rule);
}

/// x shares the sum's gradient: no op. The bias has that gradient's sum over all rows.
auto Vjp(const op::BiasAdd& op, VjpContext& context) -> void {
  const ValueId dy = context.GradientOf(op.y);
  if (context.NeedsGradient(op.bias)) {
    const auto dbias = context.GradientTarget(op.bias);
    context.Emit(op::BiasAddBackward{.dy = dy, .dbias = dbias.value, .dbias_onto = dbias.onto});
  }
  context.PassGradient(op.x, dy);
}

}  // namespace shardc
