// matmul. With op(a) an m x k matrix and op(b) a k x n one: C1: the k of both agree. C2: out is an m x n matrix. C3: a
// and b are both f32 or both bf16; out is of that type or f32. C4: out_onto is the same bytes as out. C5: its FLOPs
// can be counted.
#include "compiler/ops/cpu/gemm_cut.h"
#include "compiler/ops/op_support.h"

namespace shardc {

/// Where a is transposed, its leading dims are those that the product adds up over, as b's are.
static auto DimsOfProduct(const OpBody& body, const Plan&) -> const DimRule& {
  static constexpr DimRule plain{.fields = {{{"a", "*K"}, {"b", "KN"}, {"out", "*N"}}}, .summed = "K"};
  static constexpr DimRule b{.fields = {{{"a", "*K"}, {"b", "NK"}, {"out", "*N"}}}, .summed = "K"};
  static constexpr DimRule a{.fields = {{{"a", "*M"}, {"b", "*N"}, {"out", "MN"}}}, .summed = "*"};
  static constexpr DimRule both{.fields = {{{"a", "KM"}, {"b", "NK"}, {"out", "MN"}}}, .summed = "K"};
  const auto& op = std::get<op::Matmul>(body);
  return op.transpose_a ? (op.transpose_b ? both : a) : (op.transpose_b ? b : plain);
}

/// Returns the tasks of a product on the CPU. Without block products of f32 the library multiplies, range by range.
static auto PartsOfProduct(const OpBody& body, const Plan& plan) -> WorkParts {
  const GemmProblem problem = GemmProblemOf(std::get<op::Matmul>(body), plan);
  const bool in_ranges = FactsOf(plan.device).products_of_f32_by_library && problem.operands == DType::F32;
  const int64_t parts = in_ranges ? NumGemmRanges(problem) : GemmSlots(problem, plan.run.threads);
  return {.all = parts, .products = parts};
}

constinit const OpFacts op::Matmul::Facts{
    .work = Work::Product, .threads = {.cut = WorkCut::Formula, .formula = PartsOfProduct}, .dims_of = DimsOfProduct};

auto GemmProblemOf(const op::Matmul& op, const Plan& plan) -> GemmProblem {
  const Matrix a = AsMatrix(plan, op.a);
  const Matrix b = AsMatrix(plan, op.b);
  return {.m = op.transpose_a ? a.columns : a.rows,
          .n = op.transpose_b ? b.rows : b.columns,
          .k = op.transpose_a ? a.rows : a.columns,
          .transpose_a = op.transpose_a,
          .transpose_b = op.transpose_b,
          .operands = plan.values[op.a].dtype,
          .out = plan.values[op.out.valid() ? op.out : op.a].dtype,
          .blocks = FactsOf(plan.device).blocks};
}

auto ScratchBytes(const op::Matmul& op, const Plan& plan) -> Bytes {
  const GemmProblem problem = GemmProblemOf(op, plan);
  switch (FactsOf(plan.device).family) {
    case DeviceFamily::Cpu:
      return Bytes{SizeOf(DType::F32) * GemmSlots(problem, plan.run.threads) * GemmSlotFloats(problem)};
    // The workspace that cuBLASLt's heuristic may count on.
    case DeviceFamily::Cuda: return Bytes{int64_t{32} << 20};
  }
  CHECK(false, "a device of no family");
}

/// Where a is not transposed its leading dims live on: x [S, B, K] by W [N, K] transposed gives [S, B, N].
auto Shape(const op::Matmul& op, const Plan& plan) -> std::vector<ValueType> {
  const GemmProblem sizes = GemmProblemOf(op, plan);
  Dims shape{sizes.m};
  if (!op.transpose_a) {
    shape = ShapeOf(plan, op.a);
    shape.pop_back();
  }
  shape.push_back(sizes.n);
  return {{plan.values[op.a].dtype, shape}};
}

auto Verify(const op::Matmul& op, const Plan& plan, OpCheck& check) -> void {
  if (!check.Expect(!ShapeOf(plan, op.a).empty() && !ShapeOf(plan, op.b).empty() && !ShapeOf(plan, op.out).empty(),
                    "matmul-c1"_rule, "an operand has no dims")) {
    return;
  }
  const GemmProblem sizes = GemmProblemOf(op, plan);
  const Matrix b_size = AsMatrix(plan, op.b);
  const int64_t k_of_b = op.transpose_b ? b_size.columns : b_size.rows;
  check.Expect(sizes.k == k_of_b, "matmul-c1"_rule, "a has inner size {}, b has {}", sizes.k, k_of_b);
  const Matrix out = AsMatrix(plan, op.out);
  check.Expect(out.rows == sizes.m && out.columns == sizes.n, "matmul-c2"_rule, "out is {} x {}, expected {} x {}",
               out.rows, out.columns, sizes.m, sizes.n);
  const DType a = plan.values[op.a].dtype;
  const DType b = plan.values[op.b].dtype;
  const DType o = plan.values[op.out].dtype;
  ExpectComputed(check, a, "a", "matmul-c3"_rule);
  check.Expect(a == b && (o == a || o == DType::F32), "matmul-c3"_rule, "{} by {} into {}", ToText(a), ToText(b),
               ToText(o));
  ExpectSameBytes(check, plan, op.out, op.out_onto, "matmul-c4"_rule);
  ExpectCountable(check, {sizes.m, sizes.n, sizes.k}, "matmul-c5"_rule);
}

/// 2mnk: one multiplication and one addition per term.
auto OwnCost(const op::Matmul& op, const Plan& plan) -> OpCost {
  OpCost cost = TrafficOf(op, plan);
  const GemmProblem sizes = GemmProblemOf(op, plan);
  cost.matmul_flops = Flops{2 * sizes.m * sizes.n * sizes.k};
  return cost;
}

/// With C = op(a) op(b): d op(a) = dC op(b)^T and d op(b) = op(a)^T dC, transposed back where the operand was. What the
/// product is added to shares the sum's gradient.
auto Vjp(const op::Matmul& op, VjpContext& context) -> void {
  const ValueId dc = context.GradientOf(op.out);
  const auto product = [&](ValueId of, ValueId left, bool transpose_left, ValueId right, bool transpose_right) {
    if (context.NeedsGradient(of)) {
      const auto target = context.GradientTarget(of);
      context.Emit(op::Matmul{.a = left,
                              .b = right,
                              .out = target.value,
                              .out_onto = target.onto,
                              .scratch = {},
                              .transpose_a = transpose_left,
                              .transpose_b = transpose_right});
    }
  };
  if (op.transpose_b) {
    product(op.b, dc, true, op.a, op.transpose_a);
  } else {
    product(op.b, op.a, !op.transpose_a, dc, false);
  }
  if (op.transpose_a) {
    product(op.a, op.b, op.transpose_b, dc, true);
  } else {
    product(op.a, dc, false, op.b, !op.transpose_b);
  }
  if (op.out_onto.valid()) {
    context.PassGradient(op.out_onto, dc);
  }
}

}  // namespace shardc
