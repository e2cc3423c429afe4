// save_shard. C1: shard is the slice of the sub-vector, in the type that its role is kept in.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::SaveShard::Facts{.sections = {SectionKind::Save}, .state = StateUse::Save};

auto Shape(const op::SaveShard&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::SaveShard& op, const Plan& plan, OpCheck& check) -> void {
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  ExpectType(check, plan, op.shard,
             {StateTypeOf(plan, sub_vector, op.role), {sub_vector.length / plan.mesh.size(sub_vector.axes)}}, "shard",
             "save_shard-c1"_rule);
}

}  // namespace shardc
