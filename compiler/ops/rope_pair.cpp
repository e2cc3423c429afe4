// rope_pair. C1: q and k have three dims, the first two the same; head_dim is even and divides the last of both. C2:
// table is f32 [S, 2, head_dim / 2], or [S, B, 2, head_dim / 2], with S and B the first dims of q. C3: q and k are of
// one type, f32 or bf16; rotated_q is of q's type and the same bytes, rotated_k of k's.
#include "compiler/ops/op_support.h"
#include "compiler/ops/parts.h"

namespace shardc {

/// Returns the rope of q: k has at most as many heads.
static auto RopeOfQ(const op::RopePair& op) -> op::Rope {
  return {.x = op.q, .table = op.table, .y = op.rotated_q, .head_dim = op.head_dim, .inverse = op.inverse};
}

constinit const OpFacts op::RopePair::Facts{
    // Pairs of q, and as many of k at most.
    .launch = {{{.what = "elements of a position", .field = "q", .begin = 1, .end = 3, .of_block = 256}}},
    .threads = {.cut = WorkCut::Formula, .formula = [](const OpBody& body, const Plan& plan) {
                  return op::Rope::Facts.threads.formula(RopeOfQ(std::get<op::RopePair>(body)), plan);
                }}};

auto Shape(const op::RopePair& op, const Plan& plan) -> std::vector<ValueType> {
  return {TypeOf(plan, op.q), TypeOf(plan, op.k)};
}

auto Verify(const op::RopePair& op, const Plan& plan, OpCheck& check) -> void {
  const ValueType q = TypeOf(plan, op.q);
  const ValueType k = TypeOf(plan, op.k);
  const bool fits = q.shape.size() == 3 && k.shape.size() == 3 && q.shape[0] == k.shape[0] &&
                    q.shape[1] == k.shape[1] && op.head_dim > 0 && op.head_dim % 2 == 0 &&
                    q.shape[2] % op.head_dim == 0 && k.shape[2] % op.head_dim == 0 && k.shape[2] <= q.shape[2];
  if (!check.Expect(fits, "rope_pair-c1"_rule, "q is {}, k is {}, head_dim is {}", ToText(q.shape), ToText(k.shape),
                    op.head_dim)) {
    return;
  }
  ExpectRopeTable(check, plan, op.table, q.shape, op.head_dim, "rope_pair-c2"_rule);
  ExpectComputed(check, q.dtype, "q", "rope_pair-c3"_rule);
  ExpectType(check, plan, op.k, {q.dtype, k.shape}, "k", "rope_pair-c3"_rule);
  ExpectType(check, plan, op.rotated_q, q, "rotated_q", "rope_pair-c3"_rule);
  ExpectType(check, plan, op.rotated_k, k, "rotated_k", "rope_pair-c3"_rule);
  ExpectSameBytes(check, plan, op.rotated_q, op.q, "rope_pair-c3"_rule);
  ExpectSameBytes(check, plan, op.rotated_k, op.k, "rope_pair-c3"_rule);
}

auto Parts(const op::RopePair& op, PartsContext& context) -> void {
  op::Rope rope = RopeOfQ(op);
  context.Emit(rope);
  rope.x = op.k;
  rope.y = op.rotated_k;
  context.Emit(rope);
}

}  // namespace shardc
