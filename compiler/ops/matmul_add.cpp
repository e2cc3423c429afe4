// matmul_add. C1: a and b fit each other as the operands of a matmul do, and give rows and columns of out's. C2: a and
// b are both f32 or both bf16. C3: x and out are of one type, that of a or f32, and of one shape. C4: its FLOPs can be
// counted.
#include "compiler/ops/cpu/gemm_cut.h"
#include "compiler/ops/op_support.h"
#include "compiler/ops/parts.h"

namespace shardc {

/// Returns the product, into the bytes of the sum.
static auto ProductOf(const op::MatmulAdd& op) -> op::Matmul {
  return {.a = op.a,
          .b = op.b,
          .out = op.out,
          .out_onto = {},
          .scratch = op.scratch,
          .transpose_a = op.transpose_a,
          .transpose_b = op.transpose_b};
}

constinit const OpFacts op::MatmulAdd::Facts{
    .work = Work::Product, .threads = {.cut = WorkCut::Formula, .formula = [](const OpBody& body, const Plan& plan) {
                                         return op::Matmul::Facts.threads.formula(
                                             ProductOf(std::get<op::MatmulAdd>(body)), plan);
                                       }}};

auto GemmProblemOf(const op::MatmulAdd& op, const Plan& plan) -> GemmProblem {
  return GemmProblemOf(ProductOf(op), plan);
}

auto ScratchBytes(const op::MatmulAdd& op, const Plan& plan) -> Bytes { return ScratchBytes(ProductOf(op), plan); }

auto Shape(const op::MatmulAdd& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.x)}; }

auto Verify(const op::MatmulAdd& op, const Plan& plan, OpCheck& check) -> void {
  if (!check.Expect(!ShapeOf(plan, op.a).empty() && !ShapeOf(plan, op.b).empty() && !ShapeOf(plan, op.out).empty(),
                    "matmul_add-c1"_rule, "an operand has no dims")) {
    return;
  }
  const GemmProblem sizes = GemmProblemOf(op, plan);
  const Matrix b = AsMatrix(plan, op.b);
  const Matrix out = AsMatrix(plan, op.out);
  const int64_t k_of_b = op.transpose_b ? b.columns : b.rows;
  check.Expect(sizes.k == k_of_b && out.rows == sizes.m && out.columns == sizes.n, "matmul_add-c1"_rule,
               "{} x {} by {} x {} into {} x {}", sizes.m, sizes.k, k_of_b, sizes.n, out.rows, out.columns);
  const ValueType x = TypeOf(plan, op.x);
  ExpectComputed(check, sizes.operands, "a", "matmul_add-c2"_rule);
  check.Expect(plan.values[op.b].dtype == sizes.operands, "matmul_add-c2"_rule, "{} by {}", ToText(sizes.operands),
               ToText(plan.values[op.b].dtype));
  ExpectType(check, plan, op.out, x, "out", "matmul_add-c3"_rule);
  check.Expect(x.dtype == sizes.operands || x.dtype == DType::F32, "matmul_add-c3"_rule, "{} onto {}",
               ToText(sizes.operands), ToText(x.dtype));
  ExpectCountable(check, {sizes.m, sizes.n, sizes.k}, "matmul_add-c4"_rule);
}

auto Cost(const op::MatmulAdd& op, const Plan& plan) -> OpCost {
  OpCost cost = TrafficOf(op, plan);
  cost.matmul_flops = Cost(ProductOf(op), plan).matmul_flops;
  cost.other_flops = Flops{ElementsOf(plan, op.out)};
  return cost;
}

auto Parts(const op::MatmulAdd& op, PartsContext& context) -> void {
  op::Matmul product = ProductOf(op);
  product.scratch = {};
  product.out = context.New(op.out, {context.plan().values[op.a].dtype, ShapeOf(context.plan(), op.out)});
  context.Emit(product);
  context.Emit(op::ResidualAdd{.x = op.x, .branch = product.out, .y = op.out});
}

}  // namespace shardc
