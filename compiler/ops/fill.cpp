// fill. C1: the element type can hold the constant: an integer type takes whole numbers.
#include <cmath>

#include "compiler/ops/op_support.h"

namespace shardc {

auto Shape(const op::Fill& op, const Plan& plan) -> std::vector<ValueType> { return {TypeOf(plan, op.out)}; }

auto Verify(const op::Fill& op, const Plan& plan, OpCheck& check) -> void {
  const DType dtype = plan.values[op.out].dtype;
  const bool whole = dtype == DType::I32 || dtype == DType::I64;
  check.Expect(!whole || op.value == std::floor(op.value), "fill-c1"_rule, "{} cannot hold {}", ToText(dtype),
               op.value);
}

auto Cost(const op::Fill& op, const Plan& plan) -> OpCost { return TrafficOf(op, plan); }

}  // namespace shardc
