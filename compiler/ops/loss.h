// The two ops that end a forward pass, for passes to which it is one and the same.
#pragma once

#include <optional>
#include <ranges>
#include <unordered_map>
#include <vector>

#include "compiler/plan/op.h"

namespace shardc {

struct LossOp {
  ValueId logits;
  ValueId loss;
  /// The sum of the chunks before, of the same head; unset in the first.
  ValueId loss_onto;
  HeadId head;
};

/// What an op turns into a loss, and the sum that it writes; nothing for other ops.
inline auto LossOf(const Op& op) -> std::optional<LossOp> {
  if (const auto* whole = op.As<op::CrossEntropy>()) {
    return LossOp{whole->logits, whole->loss, whole->loss_onto, whole->head};
  }
  if (const auto* sharded = op.As<op::ShardedCrossEntropy>()) {
    return LossOp{sharded->logits, sharded->loss, sharded->loss_onto, sharded->head};
  }
  return std::nullopt;
}

/// For each sum that a chunk leaves, the sum of its head over all chunks.
inline auto LastLossSums(const std::vector<Op>& ops) -> std::unordered_map<ValueId, ValueId> {
  std::unordered_map<ValueId, ValueId> last;
  for (const Op& op : ops | std::views::reverse) {
    if (const auto loss = LossOf(op)) {
      const ValueId sum = last.try_emplace(loss->loss, loss->loss).first->second;
      if (loss->loss_onto.valid()) {
        last[loss->loss_onto] = sum;
      }
    }
  }
  return last;
}

template <class Body>
constexpr bool IsLoss = std::is_same_v<Body, op::CrossEntropy> || std::is_same_v<Body, op::ShardedCrossEntropy>;

}  // namespace shardc
