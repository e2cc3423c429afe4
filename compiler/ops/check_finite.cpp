// check_finite. C1: shard is the slice of the sub-vector, in the type that its role is kept in. C2: bad is i64[1].
// C3: bad_onto is the same bytes as bad.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::CheckFinite::Facts{
    .sections = {SectionKind::Save}, .threads = {WorkCut::OwnedSegments}, .state = StateUse::CheckFinite};

auto Shape(const op::CheckFinite&, const Plan&) -> std::vector<ValueType> { return {{DType::I64, {1}}}; }

auto ScratchBytes(const op::CheckFinite&, const Plan& plan) -> Bytes { return ScratchOfRangesOfElements(plan); }

auto Verify(const op::CheckFinite& op, const Plan& plan, OpCheck& check) -> void {
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  ExpectType(check, plan, op.shard,
             {StateTypeOf(plan, sub_vector, op.role), {sub_vector.length / plan.mesh.size(sub_vector.axes)}}, "shard",
             "check_finite-c1"_rule);
  ExpectType(check, plan, op.bad, {DType::I64, {1}}, "bad", "check_finite-c2"_rule);
  ExpectSameBytes(check, plan, op.bad, op.bad_onto, "check_finite-c3"_rule);
}

}  // namespace shardc
