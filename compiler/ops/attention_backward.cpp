// attention_backward. C1: dy, y and dq are of q's type, dk, v and dv of k's. C2: the sizes of q and k, and their types,
// are as for attention. C3: lse is f32 [B, A, S]. C4: its FLOPs can be counted. C5:
// starts, if set, are i32 [S, B].
#include "compiler/ops/cpu/attention_scratch.h"
#include "compiler/ops/cuda/attention.h"
#include "compiler/ops/op_support.h"

namespace shardc {

static auto SizesOf(const op::AttentionBackward& op, const Plan& plan) -> AttentionSizes {
  return AttentionSizesOf(plan, op.q, op.k, op.head_dim);
}

static auto PartsOfBackward(const OpBody& body, const Plan& plan) -> WorkParts {
  return PartsOf(SizesOf(std::get<op::AttentionBackward>(body), plan), plan);
}

constinit const OpFacts op::AttentionBackward::Facts{
    .sections = {SectionKind::Step},
    .has_bounded_scratch = true,
    .launch = {{{.what = "sequences", .field = "q", .begin = 1, .end = 2},
                {.what = "heads", .field = "q", .begin = 2, .end = 3, .unit = "head_dim"}}},
    .attention = {.queries = "q", .keys = "k", .queries_gradient = "dq", .head_dim = "head_dim", .starts = "starts"},
    .threads = {.cut = WorkCut::Formula, .formula = PartsOfBackward},
    .dims = {.fields = {{{"dy", "SBA"},
                         {"q", "SBA"},
                         {"k", "SBA"},
                         {"v", "SBA"},
                         {"y", "SBA"},
                         {"lse", "BAS"},
                         {"starts", "SB"},
                         {"dq", "SBA"},
                         {"dk", "SBA"},
                         {"dv", "SBA"}}},
             .whole = "S"}};

auto Shape(const op::AttentionBackward& op, const Plan& plan) -> std::vector<ValueType> {
  return {TypeOf(plan, op.q), TypeOf(plan, op.k), TypeOf(plan, op.v)};
}

auto ScratchBytes(const op::AttentionBackward& op, const Plan& plan) -> Bytes {
  const AttentionSizes sizes = SizesOf(op, plan);
  switch (FactsOf(plan.device).family) {
    case DeviceFamily::Cpu: return BytesOfSlots(sizes, plan, AttentionBackwardParts(sizes).total);
    case DeviceFamily::Cuda: return CudaAttentionOf(plan, op.q, op.k, op.starts, op.head_dim).backward_scratch();
  }
  CHECK(false, "a device of no family");
}

auto Verify(const op::AttentionBackward& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType q = TypeOf(plan, op.q);
  const ValueType k = TypeOf(plan, op.k);
  if (!check.Expect(q.shape.size() == 3 && k.shape.size() == 3 && op.head_dim > 0 && k.dtype == q.dtype &&
                        k.shape[0] == q.shape[0] && k.shape[1] == q.shape[1] && k.shape[2] > 0 &&
                        k.shape[2] % op.head_dim == 0 && q.shape[2] % k.shape[2] == 0,
                    "attention_backward-c2"_rule, "q is {}{}, k is {}{}, head_dim is {}", ToText(q.dtype),
                    ToText(q.shape), ToText(k.dtype), ToText(k.shape), op.head_dim)) {
    return;
  }
  for (const auto& [field, value] : {std::pair{"dy", op.dy}, std::pair{"y", op.y}, std::pair{"dq", op.dq}}) {
    ExpectType(check, plan, value, q, field, "attention_backward-c1"_rule);
  }
  for (const auto& [field, value] : {std::pair{"v", op.v}, std::pair{"dk", op.dk}, std::pair{"dv", op.dv}}) {
    ExpectType(check, plan, value, k, field, "attention_backward-c1"_rule);
  }
  ExpectComputed(check, q.dtype, "q", "attention_backward-c2"_rule);
  ExpectType(check, plan, op.lse, {DType::F32, {q.shape[1], q.shape[2] / op.head_dim, q.shape[0]}}, "lse",
             "attention_backward-c3"_rule);
  ExpectCountable(check, {4, q.shape[0], NumElements(q.shape)}, "attention_backward-c4"_rule);
  ExpectStarts(check, plan, op.starts, q.shape, "attention_backward-c5"_rule);
}

/// dq, dk, dv and dp are four products of the causal half. The scores, computed again inside the kernel, are not
/// counted, so that model FLOPs stay comparable.
auto OwnCost(const op::AttentionBackward& op, const Plan& plan) -> OpCost {
  OpCost cost = TrafficOf(op, plan);
  cost.matmul_flops = Flops{4 * ShapeOf(plan, op.q)[0] * ElementsOf(plan, op.q)};
  return cost;
}

}  // namespace shardc
