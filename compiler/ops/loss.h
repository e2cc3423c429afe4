// The two ops that end a forward pass, for passes to which it is one and the same.
#pragma once

#include <optional>

#include "compiler/plan/op.h"

namespace shardc {

struct LossOp {
  ValueId logits;
  ValueId loss;
};

/// What an op turns into a loss, and the sum that it writes; nothing for other ops.
inline auto LossOf(const Op& op) -> std::optional<LossOp> {
  if (const auto* whole = op.As<op::CrossEntropy>()) {
    return LossOp{whole->logits, whole->loss};
  }
  if (const auto* sharded = op.As<op::ShardedCrossEntropy>()) {
    return LossOp{sharded->logits, sharded->loss};
  }
  return std::nullopt;
}

template <class Body>
constexpr bool IsLoss = std::is_same_v<Body, op::CrossEntropy> || std::is_same_v<Body, op::ShardedCrossEntropy>;

}  // namespace shardc
