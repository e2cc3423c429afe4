// clip_factor. C1: sum, norm and factor are f64[1]. C2: max_norm is not negative.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::ClipFactor::Facts{.sections = {SectionKind::Step},
                                              .update = UpdatePart::Clip,
                                              .dims = {.fields = {{{"sum", "1"}, {"norm", "1"}, {"factor", "1"}}}}};

auto Shape(const op::ClipFactor&, const Plan&) -> std::vector<ValueType> {
  return {{DType::F64, {1}}, {DType::F64, {1}}};
}

auto Verify(const op::ClipFactor& op, const Plan& plan, OpCheck& check) -> void {
  for (const auto& [field, value] :
       {std::pair{"sum", op.sum}, std::pair{"norm", op.norm}, std::pair{"factor", op.factor}}) {
    ExpectType(check, plan, value, {DType::F64, {1}}, field, "clip_factor-c1"_rule);
  }
  check.Expect(op.max_norm >= 0, "clip_factor-c2"_rule, "max_norm is {}", op.max_norm);
}

}  // namespace shardc
