// carry. C1: last and first are the same bytes. C2: last and first are of one type.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Carry::Facts{.meaning = Meaning::Renamed,
                                         .dims = {.fields = {{{"last", "*"}, {"first", "*"}}}}};

auto Shape(const op::Carry& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.last)}; }

auto Verify(const op::Carry& op, const Plan& plan, OpCheck& check) -> void {
  ExpectSameBytes(check, plan, op.first, op.last, "carry-c1"_rule);
  ExpectType(check, plan, op.first, TypeOf(plan, op.last), "first", "carry-c2"_rule);
}

auto OwnCost(const op::Carry&, const Plan&) -> OpCost { return {}; }

}  // namespace shardc
