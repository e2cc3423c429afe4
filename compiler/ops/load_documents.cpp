// load_documents. C1: starts and positions are i32 [S, B] with S the sequence length of the data. C2: starts and
// positions lie in memory that the host can write.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::LoadDocuments::Facts{
    .sections = {SectionKind::Data, SectionKind::Eval},
    .lasting = {SectionKind::Data},
    .stream = StreamClass::Host,
    .loads_samples = true,
    .dims = {.fields = {{{"starts", "SB"}, {"positions", "SB"}}}, .made = 'B', .made_over = MadeOver::DataAxes}};

auto Shape(const op::LoadDocuments&, const Plan& plan) -> std::vector<ValueType> {
  const ValueType type{DType::I32, {plan.data.seq, plan.run.micro_batch}};
  return {type, type};
}

auto Verify(const op::LoadDocuments& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType type = Shape(op, plan)[0];
  ExpectType(check, plan, op.starts, type, "starts", "load_documents-c1"_rule);
  ExpectType(check, plan, op.positions, type, "positions", "load_documents-c1"_rule);
  ExpectHostWrites(check, plan, {op.starts, op.positions}, "load_documents-c2"_rule);
}

}  // namespace shardc
