// divide. C1: a, b and y are f64[1]. C2: y_onto is the same bytes as y.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Divide::Facts{.meaning = Meaning::Quotient,
                                          .non_finite = NonFiniteResult::NaN,
                                          .dims = {.fields = {{{"a", "1"}, {"b", "1"}, {"y", "1"}}}}};

auto Shape(const op::Divide&, const Plan&) -> std::vector<ValueType> { return {{DType::F64, {1}}}; }

auto Verify(const op::Divide& op, const Plan& plan, OpCheck& check) -> void {
  for (const auto& [field, value] : {std::pair{"a", op.a}, std::pair{"b", op.b}, std::pair{"y", op.y}}) {
    ExpectType(check, plan, value, {DType::F64, {1}}, field, "divide-c1"_rule);
  }
  ExpectSameBytes(check, plan, op.y, op.y_onto, "divide-c2"_rule);
}

}  // namespace shardc
