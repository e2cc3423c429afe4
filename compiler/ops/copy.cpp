// copy. C1: y is of the type and shape of x.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Copy::Facts{
    .meaning = Meaning::Copied, .threads = {WorkCut::Formula}, .dims = {.fields = {{{"x", "*"}, {"y", "*"}}}}};

auto Shape(const op::Copy& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.x)}; }

auto Verify(const op::Copy& op, const Plan& plan, OpCheck& check) -> void {
  ExpectType(check, plan, op.y, TypeOf(plan, op.x), "y", "copy-c1"_rule);
}

auto Cost(const op::Copy& op, const Plan& plan) -> OpCost { return TrafficOf(op, plan); }

}  // namespace shardc
