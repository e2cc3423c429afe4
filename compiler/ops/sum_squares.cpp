// sum_squares. C1: gradient is the f32 slice of the sub-vector. C2: sum is f64[1], bad is i64[1]. C3: sum_onto and
// bad_onto are the same bytes as sum and bad, and come together.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::SumSquares::Facts{
    .sections = {SectionKind::Step}, .threads = {WorkCut::OwnedSegments}, .update = UpdatePart::Squares};

auto Shape(const op::SumSquares&, const Plan&) -> std::vector<ValueType> {
  return {{DType::F64, {1}}, {DType::I64, {1}}};
}

auto ScratchBytes(const op::SumSquares&, const Plan& plan) -> Bytes { return ScratchOfRangesOfElements(plan); }

auto Verify(const op::SumSquares& op, const Plan& plan, OpCheck& check) -> void {
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  ExpectType(check, plan, op.gradient, {DType::F32, {sub_vector.length / plan.mesh.size(sub_vector.axes)}}, "gradient",
             "sum_squares-c1"_rule);
  ExpectType(check, plan, op.sum, {DType::F64, {1}}, "sum", "sum_squares-c2"_rule);
  ExpectType(check, plan, op.bad, {DType::I64, {1}}, "bad", "sum_squares-c2"_rule);
  check.Expect(op.sum_onto.valid() == op.bad_onto.valid(), "sum_squares-c3"_rule,
               "one of sum_onto and bad_onto is missing");
  ExpectSameBytes(check, plan, op.sum, op.sum_onto, "sum_squares-c3"_rule);
  ExpectSameBytes(check, plan, op.bad, op.bad_onto, "sum_squares-c3"_rule);
}

}  // namespace shardc
