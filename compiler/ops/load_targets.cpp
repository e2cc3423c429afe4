// load_targets. C1: targets are i32 [S, B] with S the sequence length of the data. C2: targets lie in memory that the
// host can write. C3: targets are of a head. C4: starts, if set, are i32 [S, B].
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::LoadTargets::Facts{
    .sections = {SectionKind::Data, SectionKind::Eval},
    .lasting = {SectionKind::Data},
    .stream = StreamClass::Host,
    .loads_samples = true,
    .dims = {.fields = {{{"starts", "SB"}, {"targets", "SB"}}}, .made = 'B', .made_over = MadeOver::DataAxes}};

auto Shape(const op::LoadTargets&, const Plan& plan) -> std::vector<ValueType> {
  return {{DType::I32, {plan.data.seq, plan.run.micro_batch}}};
}

auto Verify(const op::LoadTargets& op, const Plan& plan, OpCheck& check) -> void {
  ExpectType(check, plan, op.targets, Shape(op, plan)[0], "targets", "load_targets-c1"_rule);
  ExpectHostWrites(check, plan, {op.targets}, "load_targets-c2"_rule);
  check.Expect(op.head.valid(), "load_targets-c3"_rule, "no head is named");
  ExpectStarts(check, plan, op.starts, Shape(op, plan)[0].shape, "load_targets-c4"_rule);
}

}  // namespace shardc
