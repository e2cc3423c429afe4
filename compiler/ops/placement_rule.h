// Where the results of an op lie over a mesh axis, as follows from where its operands lie and from how its dims map
// (DimRule, op_facts.h). The place pass gives values their placements by this rule, and the verifier holds them to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ops/op_facts.h"

namespace shardc {

/// Why no rank can compute its part of an op from what it has of the operands.
struct PlacementRefusal {
  enum class Kind : uint8_t {
    None,
    /// It reads what is one rank's term of a sum as if it were the sum.
    PartialRead,
    /// A collective sums what is no term, or gathers what is no part.
    WholeSummed,
    /// An operand is cut where each rank needs the whole, or where another operand is not.
    Cut,
  };
  Kind kind = Kind::None;
  std::string text;

  auto is_set() const -> bool { return kind != Kind::None; }
};

/// One op over one axis of more than one rank.
class PlacementRule {
 public:
  /// `accesses`: those of the body, which callers have for every axis.
  PlacementRule(const OpBody& body, const AccessList& accesses, const Plan& plan, Axis axis);

  auto refusal() const -> const PlacementRefusal& { return refusal_; }
  /// Of a result. Nothing where the op does not say. Requires: no refusal.
  auto Of(std::string_view field) const -> std::optional<Placement>;

 private:
  PlacementRefusal refusal_;
  std::vector<std::pair<std::string_view, Placement>> results_;
};

}  // namespace shardc
