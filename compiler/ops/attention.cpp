// attention. C1: q is f32 or bf16 [S, B, A*D] with D = head_dim; y is of q's type. C2: k and v are [S, B, K*D] of q's
// dtype. C3: A is a multiple of K. C4: lse is f32 [B, A, S]. C5: its FLOPs can be counted. C6: starts, if set, are i32
// [S, B].
#include "compiler/ops/cuda/attention.h"
#include "compiler/ops/cpu/attention_scratch.h"
#include "compiler/ops/op_support.h"

namespace shardc {

static auto SizesOf(const op::Attention& op, const Plan& plan) -> AttentionSizes {
  return AttentionSizesOf(plan, op.q, op.k, op.head_dim);
}

static auto PartsOfAttention(const OpBody& body, const Plan& plan) -> WorkParts {
  return PartsOf(SizesOf(std::get<op::Attention>(body), plan), plan);
}

constinit const OpFacts op::Attention::Facts{
    .launch = {{{.what = "sequences", .field = "q", .begin = 1, .end = 2},
                {.what = "heads", .field = "q", .begin = 2, .end = 3, .unit = "head_dim"}}},
    .work = Work::Attention,
    .attention = {.queries = "q", .keys = "k", .head_dim = "head_dim", .starts = "starts"},
    .threads = {.cut = WorkCut::Formula, .formula = PartsOfAttention},
    .dims = {.fields = {{{"q", "SBA"}, {"k", "SBA"}, {"v", "SBA"}, {"starts", "SB"}, {"y", "SBA"}, {"lse", "BAS"}}},
             .whole = "S"},
    .model = {{{.key = ModelKey::HeadDim, .field = "head_dim"},
               {.key = ModelKey::Heads, .field = "q", .dim = 2, .unit = "head_dim", .is_cut = true},
               {.key = ModelKey::KvHeads, .field = "k", .dim = 2, .unit = "head_dim", .is_cut = true},
               {.key = ModelKey::Seq, .field = "q", .dim = 0}}}};

auto Shape(const op::Attention& op, const Plan& plan) -> std::vector<ValueType> {
  const ValueType q = TypeOf(plan, op.q);
  return {q, {DType::F32, {q.shape[1], q.shape[2] / op.head_dim, q.shape[0]}}};
}

auto ScratchBytes(const op::Attention& op, const Plan& plan) -> Bytes {
  const AttentionSizes sizes = SizesOf(op, plan);
  switch (FactsOf(plan.device).family) {
    case DeviceFamily::Cpu: return BytesOfSlots(sizes, plan, AttentionParts(sizes).total);
    case DeviceFamily::Cuda: return CudaAttentionOf(plan, op.q, op.k, op.starts, op.head_dim).forward_scratch();
  }
  CHECK(false, "a device of no family");
}

auto Verify(const op::Attention& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType q = TypeOf(plan, op.q);
  const ValueType k = TypeOf(plan, op.k);
  if (!check.Expect(q.shape.size() == 3 && op.head_dim > 0 && q.shape[2] % op.head_dim == 0, "attention-c1"_rule,
                    "q is {}, head_dim is {}", ToText(q.shape), op.head_dim)) {
    return;
  }
  if (!check.Expect(k.shape.size() == 3 && k.dtype == q.dtype && k.shape[0] == q.shape[0] && k.shape[1] == q.shape[1] &&
                        k.shape[2] > 0 && k.shape[2] % op.head_dim == 0,
                    "attention-c2"_rule, "k is {} and q is {}, head_dim is {}", ToText(k.shape), ToText(q.shape),
                    op.head_dim)) {
    return;
  }
  if (!check.Expect(q.shape[2] % k.shape[2] == 0, "attention-c3"_rule, "{} query heads over {} kv heads",
                    q.shape[2] / op.head_dim, k.shape[2] / op.head_dim)) {
    return;
  }
  ExpectComputed(check, q.dtype, "q", "attention-c1"_rule);
  ExpectType(check, plan, op.y, q, "y", "attention-c1"_rule);
  ExpectType(check, plan, op.v, k, "v", "attention-c2"_rule);
  ExpectType(check, plan, op.lse, Shape(op, plan)[1], "lse", "attention-c4"_rule);
  ExpectCountable(check, {2, q.shape[0], NumElements(q.shape)}, "attention-c5"_rule);
  ExpectStarts(check, plan, op.starts, q.shape, "attention-c6"_rule);
}

/// Two products of S x S x D a head, the causal half of each: 2 * (2 S^2 D) / 2.
/// Source: Dao 2023, "FlashAttention-2", sec. 4.1 (FLOPs of the causal forward).
auto OwnCost(const op::Attention& op, const Plan& plan) -> OpCost {
  OpCost cost = TrafficOf(op, plan);
  cost.matmul_flops = Flops{2 * ShapeOf(plan, op.q)[0] * ElementsOf(plan, op.q)};
  return cost;
}

auto Vjp(const op::Attention& op, VjpContext& context) -> void {
  const ValueId dy = context.GradientOf(op.y);
  const auto fresh = [&](ValueId value) {
    const auto target = context.GradientTarget(value);
    if (target.onto.valid()) {
      context.Refuse(
          fmt::format("attention's operand {} has another use that wants its gradient", context.Name(value)));
    }
    return target.value;
  };
  op::AttentionBackward backward{.dy = dy,
                                 .q = op.q,
                                 .k = op.k,
                                 .v = op.v,
                                 .y = op.y,
                                 .lse = op.lse,
                                 .starts = op.starts,
                                 .dq = fresh(op.q),
                                 .dk = fresh(op.k),
                                 .dv = fresh(op.v),
                                 .scratch = {},
                                 .head_dim = op.head_dim};
  context.Emit(backward);
}

}  // namespace shardc
