// cast. C1: y has the shape of x. C2: one of x and y is f32, the other bf16.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Cast::Facts{
    .sections = {SectionKind::Init, SectionKind::Restore, SectionKind::Step, SectionKind::Eval},
    .lasting = {SectionKind::Init, SectionKind::Restore},
    .meaning = Meaning::Cast,
    .threads = {WorkCut::Elements, "y"},
    .dims = {.fields = {{{"x", "*"}, {"y", "*"}}}}};

static auto IsCastable(DType dtype) -> bool { return dtype == DType::F32 || dtype == DType::BF16; }

/// The other one of f32 and bf16.
auto Shape(const op::Cast& op, const Plan& plan) -> std::vector<ValueType> {
  const ValueType x = TypeOf(plan, op.x);
  return {{x.dtype == DType::BF16 ? DType::F32 : DType::BF16, x.shape}};
}

auto Verify(const op::Cast& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType x = TypeOf(plan, op.x);
  const ValueType y = TypeOf(plan, op.y);
  check.Expect(x.shape == y.shape, "cast-c1"_rule, "x is {}, y is {}", ToText(x.shape), ToText(y.shape));
  check.Expect(IsCastable(x.dtype) && IsCastable(y.dtype) && x.dtype != y.dtype, "cast-c2"_rule, "from {} to {}",
               ToText(x.dtype), ToText(y.dtype));
}

auto Vjp(const op::Cast& op, VjpContext& context) -> void {
  if (!context.NeedsGradient(op.x)) {
    return;
  }
  const auto target = context.GradientTarget(op.x);
  const ValueId term = target.onto.valid() ? context.NewTerm(op.x) : target.value;
  context.Emit(op::Cast{.x = context.GradientOf(op.y), .y = term});
  if (target.onto.valid()) {
    context.Emit(op::Add{.a = term, .b = target.onto, .y = target.value});
  }
}

}  // namespace shardc
