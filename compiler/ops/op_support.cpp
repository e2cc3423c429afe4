#include "compiler/ops/op_support.h"

#include "compiler/plan/names.h"

namespace shardc {

auto TrafficOf(const OpBody& body, const Plan& plan) -> OpCost {
  OpCost cost;
  for (const Access& access : AccessesOf(body)) {
    const Bytes bytes = access.is_scratch ? Bytes{} : BytesOf(plan, access.value);
    if (access.kind != AccessKind::Write) {
      cost.read += bytes;
    }
    if (access.kind != AccessKind::Read) {
      cost.written += bytes;
    }
  }
  return cost;
}

auto ExpectType(OpCheck& check, const Plan& plan, ValueId value, const ValueType& expected, std::string_view field,
                PlanRule constraint) -> bool {
  const Value& actual = plan.values[value];
  // Text is made only of what fails.
  if (actual.dtype == expected.dtype && actual.shape == expected.shape) {
    return true;
  }
  return check.Expect(false, constraint, "{} is {}{}, expected {}{}", field, ToText(actual.dtype), ToText(actual.shape),
                      ToText(expected.dtype), ToText(expected.shape));
}

auto ExpectSameBytes(OpCheck& check, const Plan& plan, ValueId result, ValueId over, PlanRule constraint) -> void {
  if (!over.valid()) {
    return;
  }
  const Value& a = plan.values[result];
  const Value& b = plan.values[over];
  // Text is made only of what fails.
  if (a.buffer != b.buffer || a.offset != b.offset || a.bytes() != b.bytes()) {
    check.Expect(false, constraint, "{} and {} are not the same bytes", NameOf(plan, result), NameOf(plan, over));
  }
}

auto ExpectHostWrites(OpCheck& check, const Plan& plan, std::initializer_list<ValueId> values, PlanRule constraint)
    -> void {
  for (const ValueId id : values) {
    const Arena arena = plan.buffers[plan.values[id].buffer].arena;
    check.Expect(arena == Arena::Host || arena == Arena::Transient, constraint, "{} lies in the {} arena",
                 plan.values[id].name, ToText(arena));
  }
}

auto ExpectStarts(OpCheck& check, const Plan& plan, ValueId starts, const Dims& dims, PlanRule constraint) -> void {
  if (starts.valid()) {
    ExpectType(check, plan, starts, {DType::I32, {dims[0], dims[1]}}, "starts", constraint);
  }
}

auto ExpectRopeTable(OpCheck& check, const Plan& plan, ValueId table, const Dims& dims, int64_t head_dim,
                     PlanRule constraint) -> void {
  const bool is_by_token = ShapeOf(plan, table).size() == 4;
  const Dims expected = is_by_token ? Dims{dims[0], dims[1], 2, head_dim / 2} : Dims{dims[0], 2, head_dim / 2};
  ExpectType(check, plan, table, {DType::F32, expected}, "table", constraint);
}

auto ExpectComputed(OpCheck& check, DType dtype, std::string_view field, PlanRule constraint) -> bool {
  return check.Expect(dtype == DType::F32 || dtype == DType::BF16, constraint, "{} is {}, expected f32 or bf16", field,
                      ToText(dtype));
}

auto ExpectNormTypes(OpCheck& check, DType x, DType weight, PlanRule constraint) -> void {
  ExpectComputed(check, weight, "weight", constraint);
  check.Expect(x == weight || x == DType::F32, constraint, "x is {}, weight {}", ToText(x), ToText(weight));
}

auto ExpectCountable(OpCheck& check, std::initializer_list<int64_t> sizes, PlanRule constraint) -> bool {
  double product = 2;
  for (const int64_t size : sizes) {
    product *= static_cast<double>(size);
  }
  return check.Expect(product < 0x1p62, constraint, "{} FLOPs or bytes are more than can be counted", product);
}

auto ExpectOneOffset(OpCheck& check, const Plan& plan, ValueId value, AxisSet axes, std::string_view field,
                     PlanRule constraint) -> bool {
  const AxisSet differ = WithRelated(axes);
  const RankExpr& offset = plan.values[value].offset;
  bool is_one = true;
  for (size_t i = 0; i < NumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    is_one = is_one && (offset.axis[i] == 0 || !differ.Has(axis) || plan.mesh.size(axis) == 1);
  }
  // Text is made only of what fails.
  return is_one || check.Expect(false, constraint, "{} lies at {}, which differs among ranks that read each other's",
                                field, ToText(offset));
}

}  // namespace shardc
