// rope_table_at. C1: positions are i32 [S, B]. C2: table is f32 [S, B, 2, D/2], D/2 at most 2^19. C3: frequency reads,
// and nothing in it is left to look up. C4: every pair has a frequency, and every position below S an angle with a
// sine.
#include "compiler/expr/rotary.h"
#include "compiler/ops/cpu/usable_threads.h"
#include "compiler/ops/op_support.h"

namespace shardc {

static auto PartsOfTokens(const OpBody& body, const Plan& plan) -> WorkParts {
  const Dims& shape = ShapeOf(plan, std::get<op::RopeTableAt>(body).table);
  return {.all = shape[0] * shape[1] / SinesPerThread(shape[3])};
}

constinit const OpFacts op::RopeTableAt::Facts{
    .threads = {.cut = WorkCut::Formula, .formula = PartsOfTokens},
    .dims = {.fields = {{{"positions", "SB"}, {"table", "SB2D"}}}},
    .model = {{{.key = ModelKey::Seq, .field = "table", .dim = 0},
               {.key = ModelKey::HeadDim, .field = "table", .dim = 3, .times = 2},
               {.key = ModelKey::RopeFrequency, .field = "frequency"}}}};

auto Shape(const op::RopeTableAt& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.table)}; }

auto Verify(const op::RopeTableAt& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType positions = TypeOf(plan, op.positions);
  if (!check.Expect(positions.dtype == DType::I32 && positions.shape.size() == 2, "rope_table_at-c1"_rule,
                    "positions are {}{}, expected i32[S, B]", ToText(positions.dtype), ToText(positions.shape))) {
    return;
  }
  const ValueType type = TypeOf(plan, op.table);
  const bool fits = type.dtype == DType::F32 && type.shape.size() == 4 && type.shape[0] == positions.shape[0] &&
                    type.shape[1] == positions.shape[1] && type.shape[2] == 2 && type.shape[3] > 0 &&
                    type.shape[3] <= MostRotaryPairs;
  if (!check.Expect(fits, "rope_table_at-c2"_rule, "table is {}{} and positions are {}, expected f32[S, B, 2, D/2]",
                    ToText(type.dtype), ToText(type.shape), ToText(positions.shape))) {
    return;
  }
  const auto frequency = ReadReducedFrequency(op.frequency);
  if (check.Expect(frequency.has_value(), "rope_table_at-c3"_rule, "the frequency does not read: {}", op.frequency)) {
    const std::string fault = RotaryFault(*frequency, type.shape[3], type.shape[0]);
    check.Expect(fault.empty(), "rope_table_at-c4"_rule, "the frequency {}", fault);
  }
}

}  // namespace shardc
