// matmul_add. The product, into the bytes of the sum, keeps to the constraints of a matmul. C1: x and out are of one
// type and of one shape.
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
  Verify(ProductOf(op), plan, check);
  ExpectType(check, plan, op.out, TypeOf(plan, op.x), "out", "matmul_add-c1"_rule);
}

auto OwnCost(const op::MatmulAdd& op, const Plan& plan) -> OpCost {
  OpCost cost = TrafficOf(op, plan);
  cost.matmul_flops = Cost(ProductOf(op), plan).matmul_flops;
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
