// copy. C1: y is of the type and shape of x.
#include "compiler/ops/cpu/usable_threads.h"
#include "compiler/ops/op_support.h"

namespace shardc {

/// Elements of any type are cut by their bytes, as so many floats.
static auto PartsOfBytes(const OpBody& body, const Plan& plan) -> WorkParts {
  return {.all = BytesOf(plan, std::get<op::Copy>(body).y).value / SizeOf(DType::F32) / ElementsPerThread};
}

constinit const OpFacts op::Copy::Facts{.meaning = Meaning::Copied,
                                        .threads = {.cut = WorkCut::Formula, .formula = PartsOfBytes},
                                        .dims = {.fields = {{{"x", "*"}, {"y", "*"}}}}};

auto Shape(const op::Copy& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.x)}; }

auto Verify(const op::Copy& op, const Plan& plan, OpCheck& check) -> void {
  ExpectType(check, plan, op.y, TypeOf(plan, op.x), "y", "copy-c1"_rule);
}

}  // namespace shardc
