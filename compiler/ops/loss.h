// The ops that end a forward pass, for passes to which they are one and the same.
#pragma once

#include <optional>
#include <ranges>
#include <unordered_map>
#include <vector>

#include "compiler/ops/op_facts.h"

namespace shardc {

struct LossOp {
  ValueId logits;
  ValueId loss;
  /// The sum of the chunks before, of the same head; unset in the first.
  ValueId loss_onto;
  HeadId head;
};

/// Returns the logits that an op turns into a loss, and the sum that it writes; nothing for other ops.
inline auto LossOf(const Op& op) -> std::optional<LossOp> {
  if (!FactsOf(op).is_loss) {
    return std::nullopt;
  }
  LossOp loss{
      .logits = ValueIn(op.body, "logits"), .loss = {}, .loss_onto = {}, .head = *AttributeOf<HeadId>(op.body, "head")};
  for (const Access& access : AccessesOf(op.body)) {
    if (access.field == "loss") {
      loss.loss = access.value;
      loss.loss_onto = access.kills;
    }
  }
  return loss;
}

/// Returns, for each sum that a chunk leaves, the sum of its head over all chunks.
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

}  // namespace shardc
