// count_valid. C1: targets are i32. C2: count is f64[1]. C3: count_onto is the same bytes as count.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::CountValid::Facts{.sums_samples = true,
                                              .dims = {.fields = {{{"targets", "*"}, {"count", "1"}}}, .summed = "*"}};

auto Shape(const op::CountValid&, const Plan&) -> std::vector<ValueType> { return {{DType::F64, {1}}}; }

auto Verify(const op::CountValid& op, const Plan& plan, OpCheck& check) -> void {
  check.Expect(plan.values[op.targets].dtype == DType::I32, "count_valid-c1"_rule, "targets are {}, expected i32",
               ToText(plan.values[op.targets].dtype));
  ExpectType(check, plan, op.count, {DType::F64, {1}}, "count", "count_valid-c2"_rule);
  ExpectSameBytes(check, plan, op.count, op.count_onto, "count_valid-c3"_rule);
}

}  // namespace shardc
