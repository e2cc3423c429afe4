// Short forms used by the op files: operand types, matrix sizes, common costs.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "compiler/base/devices.h"
#include "compiler/ops/op_facts.h"
#include "compiler/ops/ops.h"

namespace shardc {

inline auto TypeOf(const Plan& plan, ValueId id) -> ValueType { return {plan.values[id].dtype, plan.values[id].shape}; }
inline auto ShapeOf(const Plan& plan, ValueId id) -> const Dims& { return plan.values[id].shape; }
inline auto ElementsOf(const Plan& plan, ValueId id) -> int64_t { return plan.values[id].num_elements(); }
inline auto BytesOf(const Plan& plan, ValueId id) -> Bytes { return plan.values[id].bytes(); }

/// A value seen as a matrix: the product of its leading dims by its last. A vector is one row.
struct Matrix {
  int64_t rows = 1;
  int64_t columns = 1;
};
inline auto AsMatrix(const Plan& plan, ValueId id) -> Matrix {
  const Dims& shape = ShapeOf(plan, id);
  const int64_t columns = shape.empty() ? 1 : shape.back();
  return {columns == 0 ? 0 : NumElements(shape) / columns, columns};
}

/// Returns the shape without its last dim. Requires: there is one.
inline auto LeadingDims(const Plan& plan, ValueId id) -> Dims {
  Dims dims = ShapeOf(plan, id);
  dims.pop_back();
  return dims;
}

/// Checks that `value` has this type. The failure names both types. Returns true if it has.
auto ExpectType(OpCheck& check, const Plan& plan, ValueId value, const ValueType& expected, std::string_view field,
                PlanRule constraint) -> bool;
/// Checks that an OVER or ACC result is the same bytes as `over`, which it overwrites or adds to. Nothing is checked of
/// an ACC result that is not added to anything.
auto ExpectSameBytes(OpCheck& check, const Plan& plan, ValueId result, ValueId over, PlanRule constraint) -> void;

/// Checks that values lie in memory that the host can write.
auto ExpectHostWrites(OpCheck& check, const Plan& plan, std::initializer_list<ValueId> values, PlanRule constraint)
    -> void;

/// Checks that `starts`, if it is set, is i32 [S, B]: the first two of `dims`.
auto ExpectStarts(OpCheck& check, const Plan& plan, ValueId starts, const Dims& dims, PlanRule constraint) -> void;

/// Checks that a table of rotations is f32 [S, 2, D/2] or [S, B, 2, D/2]; S and B are the first two of `dims`.
auto ExpectRopeTable(OpCheck& check, const Plan& plan, ValueId table, const Dims& dims, int64_t head_dim,
                     PlanRule constraint) -> void;

/// Checks that an element type is one that kernels compute in: f32 or bf16.
auto ExpectComputed(OpCheck& check, DType dtype, std::string_view field, PlanRule constraint) -> bool;
/// Checks the types of a norm: weight is f32 or bf16, x has the weight's type or f32.
auto ExpectNormTypes(OpCheck& check, DType x, DType weight, PlanRule constraint) -> void;
/// Checks the results of a norm: `y` and `rstd` are of the first and the last type that Shape returns; eps is not
/// negative.
template <class Norm>
auto ExpectNormResults(OpCheck& check, const Plan& plan, const Norm& op, PlanRule of_y, PlanRule of_rstd,
                       PlanRule of_eps) -> void {
  const std::vector<ValueType> types = Shape(op, plan);
  ExpectType(check, plan, op.y, types.front(), "y", of_y);
  ExpectType(check, plan, op.rstd, types.back(), "rstd", of_rstd);
  check.Expect(op.eps >= 0, of_eps, "eps is {}", op.eps);
}
/// Emits the backward op of a norm without a bias.
template <class Backward, class Norm>
auto EmitNormBackward(const Norm& op, VjpContext& context) -> void {
  const ValueId dy = context.GradientOf(op.y);
  const auto dx = context.GradientTarget(op.x);
  const auto dweight = context.GradientTarget(op.weight);
  context.Emit(Backward{.dy = dy,
                        .x = op.x,
                        .weight = op.weight,
                        .rstd = op.rstd,
                        .dx = dx.value,
                        .dx_onto = dx.onto,
                        .dweight = dweight.value,
                        .dweight_onto = dweight.onto});
}

/// Checks that twice the product of these sizes fits what Flops and Bytes count in: no formula of a cost overflows.
auto ExpectCountable(OpCheck& check, std::initializer_list<int64_t> sizes, PlanRule constraint) -> bool;
/// Checks that `value` has one offset on all ranks of a group over `axes`: peers find their own interval of it at the
/// offset that this rank has.
auto ExpectOneOffset(OpCheck& check, const Plan& plan, ValueId value, AxisSet axes, std::string_view field,
                     PlanRule constraint) -> bool;

/// Checks the operands of an op that gives a parameter, or what the optimizer keeps of it in `dtype`, its first values:
/// `shard` is a slice of the sub-vector, and the parameter has a segment there.
template <class Op>
auto ExpectShardToFill(OpCheck& check, const Plan& plan, const Op& op, DType dtype, PlanRule of_shard,
                       PlanRule of_parameter) -> void {
  const SubVector& sub_vector = plan.sub_vectors[op.sub_vector];
  const Parameter& parameter = plan.parameters[op.parameter];
  ExpectType(check, plan, op.shard, {dtype, {sub_vector.length / plan.mesh.size(sub_vector.axes)}}, "shard", of_shard);
  check.Expect(std::ranges::count(sub_vector.segments, op.parameter, &Segment::parameter) > 0, of_parameter,
               "{} does not lie in v{}", parameter.name, op.sub_vector.index);
}
/// Returns the cost of an op that writes a rank's share of a parameter, or of what the optimizer keeps of it.
template <class Op>
auto CostOfFilling(const Op& op, const Plan& plan, DType dtype) -> OpCost {
  OpCost cost;
  cost.written = Bytes{plan.parameters[op.parameter].num_elements() * SizeOf(dtype)} /
                 plan.mesh.size(plan.sub_vectors[op.sub_vector].axes);
  return cost;
}

/// Returns the scratch of an op that needs it only on a device of the family Cuda.
inline auto ScratchOnCuda(const Plan& plan, int64_t bytes) -> Bytes {
  switch (FactsOf(plan.device).family) {
    case DeviceFamily::Cpu: return {};
    case DeviceFamily::Cuda: return Bytes{bytes};
  }
  CHECK(false, "a device of no family");
}
/// A sum over the rows of a matrix into one row of f32: so many ranges of rows each have a sum of their own first.
constexpr int64_t RangesOfRows = 256;
/// A sum over a vector into one number: so many ranges each have a sum of their own first, and an id beside it.
constexpr int64_t RangesOfElements = 1024;
inline auto ScratchOfRangesOfElements(const Plan& plan) -> Bytes {
  return ScratchOnCuda(plan, RangesOfElements * (SizeOf(DType::F64) + SizeOf(DType::I64)));
}

}  // namespace shardc
