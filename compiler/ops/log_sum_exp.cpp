// log_sum_exp. C1: logits are f32 or bf16 and have dims. C2: lse is f32 of the leading dims of logits.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::LogSumExp::Facts{.threads = {WorkCut::Rows, "logits"},
                                             .non_finite = NonFiniteResult::MinusInfinity,
                                             .vocabulary = {.matrix = "logits"},
                                             .dims = {.fields = {{{"logits", "*V"}, {"lse", "*", "V"}}}}};

auto Shape(const op::LogSumExp& op, const Plan& plan) -> std::vector<ValueType> {
  return {{DType::F32, LeadingDims(plan, op.logits)}};
}

auto Verify(const op::LogSumExp& op, const Plan& plan, OpCheck& check) -> void {
  if (check.Expect(!ShapeOf(plan, op.logits).empty(), "log_sum_exp-c1"_rule, "logits have no dims")) {
    ExpectComputed(check, plan.values[op.logits].dtype, "logits", "log_sum_exp-c1"_rule);
    ExpectType(check, plan, op.lse, Shape(op, plan)[0], "lse", "log_sum_exp-c2"_rule);
  }
}

}  // namespace shardc
