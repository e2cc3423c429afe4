// rope_table. C1: table is f32 [S, 2, D/2], D/2 at most 2^19. C2: frequency reads, and nothing in it is left to look
// up. C3: every pair has a frequency, and every position an angle with a sine.
#include "compiler/expr/rotary.h"
#include "compiler/ops/cpu/usable_threads.h"
#include "compiler/ops/op_support.h"

namespace shardc {

static auto PartsOfSines(const OpBody& body, const Plan& plan) -> WorkParts {
  const Dims& shape = ShapeOf(plan, std::get<op::RopeTable>(body).table);
  return {.all = shape[0] / SinesPerThread(shape[2])};
}

constinit const OpFacts op::RopeTable::Facts{
    .sections = {SectionKind::Constants},
    .lasting = {SectionKind::Constants},
    .threads = {.cut = WorkCut::Formula, .formula = PartsOfSines},
    .model = {{{.key = ModelKey::Seq, .field = "table", .dim = 0},
               {.key = ModelKey::HeadDim, .field = "table", .dim = 2, .times = 2},
               {.key = ModelKey::RopeFrequency, .field = "frequency"}}}};

/// The shape is the caller's choice (sequence and head width); the op only fills it.
auto Shape(const op::RopeTable& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.table)}; }

auto Verify(const op::RopeTable& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType type = TypeOf(plan, op.table);
  if (!check.Expect(type.dtype == DType::F32 && type.shape.size() == 3 && type.shape[1] == 2 && type.shape[2] > 0 &&
                        type.shape[2] <= MostRotaryPairs,
                    "rope_table-c1"_rule, "table is {}{}, expected f32[S, 2, D/2]", ToText(type.dtype),
                    ToText(type.shape))) {
    return;
  }
  const auto frequency = ReadReducedFrequency(op.frequency);
  if (check.Expect(frequency.has_value(), "rope_table-c2"_rule, "the frequency does not read: {}", op.frequency)) {
    const std::string fault = RotaryFault(*frequency, type.shape[2], type.shape[0]);
    check.Expect(fault.empty(), "rope_table-c3"_rule, "the frequency {}", fault);
  }
}

}  // namespace shardc
