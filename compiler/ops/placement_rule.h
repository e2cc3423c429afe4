// Where the results of an op lie over a mesh axis, as follows from where its operands lie and from how its dims map
// (DimRule, op_facts.h). The place pass gives values their placements by this rule, and the verifier holds them to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/base/in_place_vector.h"
#include "compiler/ops/op_facts.h"

namespace shardc {

/// Why no rank can compute its share of the results from what it has of the operands.
struct PlacementRefusal {
  enum class Kind : uint8_t {
    None,
    /// It reads what is one rank's term of a sum as if it were the sum.
    PartialRead,
    /// A collective sums what is no term, or gathers what is no shard.
    WholeSummed,
    /// An operand is cut where each rank needs the whole, or where another operand is not.
    Cut,
  };
  Kind kind = Kind::None;
  std::string text;

  auto is_set() const -> bool { return kind != Kind::None; }
};

/// What follows over one axis.
struct DerivedPlacements {
  struct Result {
    std::string_view field;
    Placement placement;
  };
  PlacementRefusal refusal;
  InPlaceVector<Result, AccessList::max_size()> results;

  /// Of a result. Nothing where the op does not say. Requires: no refusal.
  auto Of(std::string_view field) const -> std::optional<Placement>;
};

/// The letters of one op's operands and results, from which their placements follow over any axis.
class PlacementRule {
 public:
  /// All four outlive the rule. `accesses`: those of the body. Placements of operands may change between the axes,
  /// shapes may not.
  PlacementRule(const OpBody& body, const AccessList& accesses, const Plan& plan);

  /// Over an axis of more than one rank.
  auto Over(Axis axis) const -> DerivedPlacements;

 private:
  friend class PlacementDerivation;
  /// A field that the op's rule names.
  struct Field {
    const Access* access;
    const DimFact* fact;
    /// One a dim: those that `*` stands for are a, b, c, ...
    InPlaceVector<char, Dims::max_size()> letters;
  };

  const OpBody& body_;
  const Plan& plan_;
  const OpFacts& facts_;
  const DimRule& rule_;
  InPlaceVector<Field, AccessList::max_size()> fields_;
};

}  // namespace shardc
