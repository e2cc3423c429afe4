// Where the results of an op lie over a mesh axis, as follows from where its operands lie and from how its dims map
// (DimRule, op_facts.h). The place pass gives values their placements by this rule, and the verifier holds them to it.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "compiler/base/in_place_vector.h"
#include "compiler/ops/op_facts.h"

namespace shardc {

/// Why no rank can compute its share of the results from what it has of the operands.
struct PlacementRefusal {
  enum class Kind : uint8_t {
    None,
    /// It reads what is one rank's term of a sum as if it were the sum.
    PartialRead,
    /// A collective sums a value whose parts are not terms, or gathers one whose parts are not shards.
    WholeSummed,
    /// An operand is cut where each rank needs the whole, or where another operand is not.
    Cut,
  };
  Kind kind = Kind::None;
  std::string text;

  auto is_set() const -> bool { return kind != Kind::None; }
};

/// Placements of the results over one axis.
struct DerivedPlacements {
  PlacementRefusal refusal;
  /// Placements of the results, each at the number of its access; nothing if the op does not say. Requires: no refusal.
  std::array<std::optional<Placement>, AccessList::max_size()> results;
};

/// The fields of one op that say how dims map, from which the placements of its results follow over any axis.
class PlacementRule {
 public:
  /// Keeps references to the body and the plan. `accesses`: those of the body. Placements of operands may change
  /// between the axes, shapes may not.
  PlacementRule(const OpBody& body, std::span<const Access> accesses, const Plan& plan);

  /// Derives the placements over an axis of more than one rank.
  auto Over(Axis axis) const -> DerivedPlacements;

 private:
  friend class PlacementDerivation;
  /// A field that the op's rule names.
  struct Field {
    const Value* value;
    const DimFact* fact;
    /// The number of its access.
    uint8_t access;
    bool is_operand;
  };

  const OpBody& body_;
  const OpFacts& facts_;
  const DimRule& rule_;
  InPlaceVector<Field, AccessList::max_size()> fields_;
};

}  // namespace shardc
