// save_begin. C1: bad is i64[1].
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::SaveBegin::Facts{.sections = {SectionKind::Save}, .state = StateUse::BeginSave};

auto Shape(const op::SaveBegin&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::SaveBegin& op, const Plan& plan, OpCheck& check) -> void {
  ExpectType(check, plan, op.bad, {DType::I64, {1}}, "bad", "save_begin-c1"_rule);
}

}  // namespace shardc
