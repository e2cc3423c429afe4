// load_tokens. C1: tokens and targets are i32 [S, B] with S the sequence length of the data. C2: tokens and targets lie
// in memory that the host can write. C3: starts, if set, are i32 [S, B].
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::LoadTokens::Facts{
    .sections = {SectionKind::Data, SectionKind::Eval},
    .lasting = {SectionKind::Data},
    .stream = StreamClass::Host,
    .loads_samples = true,
    .dims = {.fields = {{{"starts", "SB"}, {"tokens", "SB"}, {"targets", "SB"}}},
             .made = 'B',
             .made_over = MadeOver::DataAxes}};

auto Shape(const op::LoadTokens&, const Plan& plan) -> std::vector<ValueType> {
  const ValueType type{DType::I32, {plan.data.seq, plan.run.micro_batch}};
  return {type, type};
}

auto Verify(const op::LoadTokens& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType type = Shape(op, plan)[0];
  ExpectType(check, plan, op.tokens, type, "tokens", "load_tokens-c1"_rule);
  ExpectType(check, plan, op.targets, type, "targets", "load_tokens-c1"_rule);
  ExpectHostWrites(check, plan, {op.tokens, op.targets}, "load_tokens-c2"_rule);
  ExpectStarts(check, plan, op.starts, type.shape, "load_tokens-c3"_rule);
}

}  // namespace shardc
