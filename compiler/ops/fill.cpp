// fill. C1: the element type can hold the constant: an integer type takes whole numbers, and each has a greatest one.
#include <cmath>
#include <limits>

#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Fill::Facts{.sections = {SectionKind::Init, SectionKind::Step, SectionKind::Eval},
                                        .lasting = {SectionKind::Init},
                                        .meaning = Meaning::Constant,
                                        .threads = {WorkCut::Elements, "out"}};

auto Shape(const op::Fill& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.out)}; }

/// No number of the type, nor its negative, is greater; rounded down where a double cannot tell.
static auto GreatestOf(DType dtype) -> double {
  switch (dtype) {
    case DType::F32: return std::numeric_limits<float>::max();
    case DType::BF16: return 0x1.fep127;
    case DType::F16: return 0x1.ffcp15;
    case DType::F64: return std::numeric_limits<double>::max();
    case DType::I32: return std::numeric_limits<int32_t>::max();
    case DType::I64: return 0x1.fffffffffffffp62;
  }
  CHECK(false, "dtype {}", static_cast<int>(dtype));
}

auto Verify(const op::Fill& op, const Plan& plan, OpCheck& check) -> void {
  const DType dtype = plan.values[op.out].dtype;
  const bool whole = dtype == DType::I32 || dtype == DType::I64;
  check.Expect((!whole || op.value == std::floor(op.value)) && std::fabs(op.value) <= GreatestOf(dtype), "fill-c1"_rule,
               "{} cannot hold {}", ToText(dtype), op.value);
}

}  // namespace shardc
