// restore_shard. C1: shard is the slice of the sub-vector, in the type that its role is kept in.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::RestoreShard::Facts{
    .sections = {SectionKind::Restore}, .lasting = {SectionKind::Restore}, .state = StateUse::Restore};

auto Shape(const op::RestoreShard& op, const Plan& plan) -> std::vector<ValueType> {
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  return {{StateTypeOf(plan, sub_vector, op.role), {sub_vector.length / plan.mesh.size(sub_vector.axes)}}};
}

auto Verify(const op::RestoreShard& op, const Plan& plan, OpCheck& check) -> void {
  ExpectType(check, plan, op.shard, Shape(op, plan)[0], "shard", "restore_shard-c1"_rule);
}

}  // namespace shardc
