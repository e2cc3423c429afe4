// The loops of a section. A section is a flat list of ops, in which `repeat` and `end_repeat` bracket the body of a
// loop; whoever walks ops in order and wants to know the loop that they stand in asks a LoopTracker.
#pragma once

#include <vector>

#include "compiler/plan/op.h"

namespace shardc {

enum class LoopEdge : uint8_t { None, Begin, End };

inline auto LoopEdgeOf(const OpBody& body) -> LoopEdge {
  return std::holds_alternative<op::Repeat>(body)      ? LoopEdge::Begin
         : std::holds_alternative<op::EndRepeat>(body) ? LoopEdge::End
                                                       : LoopEdge::None;
}
inline auto LoopEdgeOf(const Op& op) -> LoopEdge { return LoopEdgeOf(op.body); }

/// Returns how often the body of the loop runs that this op begins. Requires: LoopEdgeOf(op) is Begin.
inline auto LoopCountOf(const Op& op) -> int64_t { return std::get<op::Repeat>(op.body).count; }

/// Follows the loops round the ops of one section. Call Enter for each op, in order, before asking.
class LoopTracker {
 public:
  /// Notes the next op. The op that begins a loop is in it, the op that ends it is not. An end without a beginning is
  /// ignored.
  auto Enter(const Op& op) -> void {
    // Most ops neither begin nor end a loop.
    if (const LoopEdge edge = LoopEdgeOf(op); edge != LoopEdge::None) [[unlikely]] {
      Cross(edge, op);
    }
  }
  auto in_loop() const -> bool { return !counts_.empty(); }
  /// Returns the passes of the innermost loop; 1 outside of loops.
  auto count() const -> int64_t { return counts_.empty() ? 1 : counts_.back(); }

 private:
  auto Cross(LoopEdge edge, const Op& op) -> void {
    if (edge == LoopEdge::Begin) {
      counts_.push_back(LoopCountOf(op));
    } else if (!counts_.empty()) {
      counts_.pop_back();
    }
  }

  std::vector<int64_t> counts_;
};

}  // namespace shardc
