// embedding_backward. C1: tokens are i32. C2: dweight is an f32 matrix [V, H]. C3: dy is [tokens..., H],
// f32 or bf16.
// C4: dweight_onto is the same bytes as dweight.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::EmbeddingBackward::Facts{
    .sections = {SectionKind::Step},
    .launch = {{{.what = "columns", .field = "dweight", .begin = 1, .end = 2, .of_block = 128}}},
    .threads = {WorkCut::Columns, "dy"},
    .vocabulary = {.matrix = "dweight", .by_rows = true, .ids = "tokens", .as_tokens = true},
    .dims = {.fields = {{{"tokens", "*"}, {"dy", "*H"}, {"dweight", "VH"}}},
             .summed = "*",
             .made = 'V',
             .made_over = MadeOver::VocabularyAxes}};

auto Shape(const op::EmbeddingBackward& op, const Plan& plan) -> std::vector<ValueType> {
  return {{DType::F32, ShapeOf(plan, op.dweight)}};
}

auto Verify(const op::EmbeddingBackward& op, const Plan& plan, OpCheck& check) -> void {
  check.Expect(plan.values[op.tokens].dtype == DType::I32, "embedding_backward-c1"_rule, "tokens are {}, expected i32",
               ToText(plan.values[op.tokens].dtype));
  const Dims& weight = ShapeOf(plan, op.dweight);
  if (check.Expect(weight.size() == 2, "embedding_backward-c2"_rule, "dweight is {}, expected [V, H]",
                   ToText(weight))) {
    ExpectType(check, plan, op.dweight, {DType::F32, weight}, "dweight", "embedding_backward-c2"_rule);
    const DType element = plan.values[op.dy].dtype == DType::BF16 ? DType::BF16 : DType::F32;
    Dims shape = ShapeOf(plan, op.tokens);
    shape.push_back(weight[1]);
    ExpectType(check, plan, op.dy, {element, shape}, "dy", "embedding_backward-c3"_rule);
  }
  ExpectSameBytes(check, plan, op.dweight, op.dweight_onto, "embedding_backward-c4"_rule);
}

/// Without dweight_onto the whole matrix is cleared first; rows that are named are read and written.
auto OwnCost(const op::EmbeddingBackward& op, const Plan& plan) -> OpCost {
  const Bytes rows = BytesOf(plan, op.dy);
  OpCost cost{.matmul_flops = {}, .read = rows * 2 + BytesOf(plan, op.tokens), .written = rows, .wires = {}};
  if (!op.dweight_onto.valid()) {
    cost.written += BytesOf(plan, op.dweight);
  }
  return cost;
}

}  // namespace shardc
