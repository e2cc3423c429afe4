// rope. C1: head_dim is even and divides the last dim of x. C2: table is f32 [S, 2, head_dim / 2], or [S, B, 2,
// head_dim / 2], with S and B the first dims of x. C3: y is of x's type, f32 or bf16, and the same bytes.
#include "compiler/ops/cpu/usable_threads.h"
#include "compiler/ops/op_support.h"

namespace shardc {

/// Returns the pieces that threads can take: what has one row of the table, a position of all sequences or of one.
static auto PartsOfRows(const OpBody& body, const Plan& plan) -> WorkParts {
  const auto& op = std::get<op::Rope>(body);
  const Dims& table = ShapeOf(plan, op.table);
  const int64_t rows = table.size() == 4 ? table[0] * table[1] : table[0];
  return {.all = rows / RowsPerThread(ElementsOf(plan, op.x) / std::max<int64_t>(rows, 1))};
}

static auto DimsOfRope(const OpBody& body, const Plan& plan) -> const DimRule& {
  static constexpr DimRule by_position{.fields = {{{"x", "SBA"}, {"table", "S2D"}, {"y", "SBA"}}}, .whole = "D"};
  static constexpr DimRule by_token{.fields = {{{"x", "SBA"}, {"table", "SB2D"}, {"y", "SBA"}}}, .whole = "D"};
  return ShapeOf(plan, std::get<op::Rope>(body).table).size() == 4 ? by_token : by_position;
}

constinit const OpFacts op::Rope::Facts{
    // In pairs.
    .launch = {{{.what = "elements of a position", .field = "x", .begin = 1, .end = 3, .of_block = 512}}},
    .threads = {.cut = WorkCut::Formula, .formula = PartsOfRows},
    .dims_of = DimsOfRope,
    .model = {{{.key = ModelKey::HeadDim, .field = "head_dim", .is_even = true}}}};

auto Shape(const op::Rope& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.x)}; }

auto Verify(const op::Rope& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType x = TypeOf(plan, op.x);
  if (!check.Expect(x.shape.size() == 3 && op.head_dim > 0 && op.head_dim % 2 == 0 && x.shape[2] % op.head_dim == 0,
                    "rope-c1"_rule, "x is {}, head_dim is {}", ToText(x.shape), op.head_dim)) {
    return;
  }
  ExpectRopeTable(check, plan, op.table, x.shape, op.head_dim, "rope-c2"_rule);
  ExpectComputed(check, x.dtype, "x", "rope-c3"_rule);
  ExpectType(check, plan, op.y, x, "y", "rope-c3"_rule);
  ExpectSameBytes(check, plan, op.y, op.x, "rope-c3"_rule);
}

/// A rotation's transpose is its inverse.
auto Vjp(const op::Rope& op, VjpContext& context) -> void {
  const ValueId dy = context.GradientOf(op.y);
  context.Emit(op::Rope{.x = dy,
                        .table = op.table,
                        .y = context.GradientOver(op.x, dy),
                        .head_dim = op.head_dim,
                        .inverse = !op.inverse});
}

}  // namespace shardc
