// residual_add. C1: x and y are of one type. C2: branch has the shape of x. C3: branch is f32 or bf16: of x's element
// type, or bf16 where x is f32.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::ResidualAdd::Facts{.meaning = Meaning::Sum,
                                               .threads = {WorkCut::Elements, "y"},
                                               .dims = {.fields = {{{"x", "*"}, {"branch", "*"}, {"y", "*"}}}}};

auto Shape(const op::ResidualAdd& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.x)}; }

auto Verify(const op::ResidualAdd& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType x = TypeOf(plan, op.x);
  const ValueType branch = TypeOf(plan, op.branch);
  ExpectType(check, plan, op.y, x, "y", "residual_add-c1"_rule);
  check.Expect(branch.shape == x.shape, "residual_add-c2"_rule, "x is {}, branch is {}", ToText(x.shape),
               ToText(branch.shape));
  ExpectComputed(check, branch.dtype, "branch", "residual_add-c3"_rule);
  check.Expect(branch.dtype == x.dtype || (x.dtype == DType::F32 && branch.dtype == DType::BF16),
               "residual_add-c3"_rule, "x is {}, branch is {}", ToText(x.dtype), ToText(branch.dtype));
}

/// x shares the sum's gradient; the branch gets it rounded to its type.
auto Vjp(const op::ResidualAdd& op, VjpContext& context) -> void {
  const ValueId dy = context.GradientOf(op.y);
  context.PassGradient(op.x, dy);
  if (context.NeedsGradient(op.branch)) {
    const auto target = context.GradientTarget(op.branch);
    if (target.onto.valid()) {
      context.Refuse(fmt::format("the branch {} has another use that wants its gradient", context.Name(op.branch)));
    }
    context.Emit(op::Cast{.x = dy, .y = target.value});
  }
}

}  // namespace shardc
