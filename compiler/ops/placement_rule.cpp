#include "compiler/ops/placement_rule.h"

#include <algorithm>

#include "compiler/ops/ops.h"

namespace shardc {

/// The letters of a value with so many dims.
static auto LettersOf(const DimFact& fact, size_t dims) {
  InPlaceVector<char, Dims::max_size()> letters;
  for (const char letter : fact.letters) {
    if (letter != '*') {
      letters.push_back(letter);
      continue;
    }
    const size_t rest = fact.letters.size() - 1;
    for (size_t i = 0; i + rest < dims; ++i) {
      letters.push_back(static_cast<char>('a' + i));
    }
  }
  return letters;
}

PlacementRule::PlacementRule(const OpBody& body, const AccessList& accesses, const Plan& plan)
    : body_(body),
      plan_(plan),
      facts_(FactsOf(body)),
      rule_(facts_.dims_of == nullptr ? facts_.dims : facts_.dims_of(body, plan)) {
  // Facts stand in the order of the fields, as a rule: each is looked for after the last one first.
  const DimFact* next = rule_.fields.begin();
  for (const Access& access : accesses) {
    const DimFact* fact = std::ranges::find(next, rule_.fields.end(), access.field, &DimFact::field);
    fact = fact == rule_.fields.end() ? std::ranges::find(rule_.fields, access.field, &DimFact::field) : fact;
    if (fact != rule_.fields.end()) {
      next = fact + 1;
      fields_.push_back({&access, fact, LettersOf(*fact, plan.values[access.value].shape.size())});
    }
  }
}

/// Follows one op over one axis.
class PlacementDerivation {
 public:
  PlacementDerivation(const PlacementRule& op, Axis axis)
      : op_(op), plan_(op.plan_), facts_(op.facts_), rule_(op.rule_), axis_(axis), is_moved_(IsMoved()) {}

  /// The placements of the results, or what is wrong.
  auto Run() -> DerivedPlacements {
    for (const Field& field : op_.fields_) {
      if (field.access->kind == AccessKind::Read && !ReadOperand(field)) {
        return std::move(derived_);
      }
    }
    if (!IsEachCut()) {
      return std::move(derived_);
    }
    for (const Field& field : op_.fields_) {
      if (field.access->kind != AccessKind::Read && !AddResult(field)) {
        return std::move(derived_);
      }
    }
    return std::move(derived_);
  }

 private:
  using Kind = PlacementRefusal::Kind;
  using Field = PlacementRule::Field;

  auto PlacementOf(const Field& field) const -> Placement {
    return plan_.values[field.access->value].placement[static_cast<size_t>(axis_)];
  }
  auto Refuse(Kind kind, std::string text) -> void { derived_.refusal = {kind, std::move(text)}; }
  static auto Names(std::string_view list, char letter) -> bool {
    const bool is_star = letter >= 'a' && letter <= 'z';
    return list.find(is_star ? '*' : letter) != std::string_view::npos;
  }
  auto IsMoved() const -> bool {
    const auto* axes = facts_.collective == CollectiveKind::None ? nullptr : AttributeOf<AxisSet>(op_.body_, "axes");
    return axes != nullptr && axes->Has(axis_);
  }

  /// What the collective takes over its axes: shards to gather, or terms to sum.
  auto ReadMoved(const Field& field) -> bool {
    const bool gathers = facts_.collective == CollectiveKind::AllGather;
    // Stacked, each rank's is one of a dim that the result has more.
    const bool stacks = gathers && rule_.fields[1].letters.size() > rule_.fields[0].letters.size();
    const Placement expected = stacks ? Placement{} : gathers ? Placement::Shard(0) : Placement::Partial();
    if (PlacementOf(field) != expected) {
      Refuse(Kind::WholeSummed,
             fmt::format("{} {} over {}, along which the ranks have no {} of it", gathers ? "gathers" : "sums",
                         field.fact->field, ToText(axis_), gathers ? "shards" : "terms"));
    }
    return !derived_.refusal.is_set();
  }

  auto ReadOperand(const Field& field) -> bool {
    if (is_moved_) {
      return ReadMoved(field);
    }
    const Placement placement = PlacementOf(field);
    if (placement == Placement{}) {
      return true;
    }
    if (placement == Placement::Partial()) {
      is_partial_ = true;
      const bool goes_on = facts_.meaning != Meaning::Computed && facts_.meaning != Meaning::Quotient;
      if (!goes_on && facts_.collective == CollectiveKind::None) {
        Refuse(Kind::PartialRead,
               fmt::format("reads {}, which is a term of a sum over {}", field.fact->field, ToText(axis_)));
      }
      return !derived_.refusal.is_set();
    }
    const auto dim = static_cast<size_t>(placement.dim);
    const char cut = dim < field.letters.size() ? field.letters[dim] : '?';
    if (cut_ != ' ' && cut != cut_) {
      Refuse(Kind::Cut,
             fmt::format("{} is cut over {} along another dim than {}", field.fact->field, ToText(axis_), cut_field_));
    } else if (cut == '?' || (cut >= '0' && cut <= '9') || Names(rule_.whole, cut)) {
      Refuse(Kind::Cut, fmt::format("{} is cut over {} along dim {}, which each rank needs whole", field.fact->field,
                                    ToText(axis_), placement.dim));
    }
    cut_ = cut;
    cut_field_ = field.fact->field;
    return !derived_.refusal.is_set();
  }

  /// What has the letter that is cut is cut there.
  auto IsEachCut() -> bool {
    if (cut_ == ' ') {
      return true;
    }
    for (const Field& field : op_.fields_) {
      if (field.access->kind == AccessKind::Read && PlacementOf(field).kind != PlacementKind::Shard &&
          std::ranges::find(field.letters, cut_) != field.letters.end()) {
        Refuse(Kind::Cut, fmt::format("{} is cut over {}, {} is not", cut_field_, ToText(axis_), field.fact->field));
        return false;
      }
    }
    return true;
  }

  auto AddResult(const Field& field) -> bool {
    const std::optional<Placement> placement = is_moved_ ? OfMoved() : OfResult(field);
    if (placement) {
      derived_.results.push_back({field.fact->field, *placement});
    }
    return placement.has_value();
  }

  auto OfMoved() const -> Placement {
    return facts_.collective == CollectiveKind::ReduceScatter ? Placement::Shard(0) : Placement{};
  }

  auto OfResult(const Field& field) -> std::optional<Placement> {
    const char letter = cut_ == ' ' && IsMade() ? rule_.made : cut_;
    const auto* dim = letter == ' ' ? field.letters.end() : std::ranges::find(field.letters, letter);
    if (dim != field.letters.end()) {
      return Placement::Shard(static_cast<int>(dim - field.letters.begin()));
    }
    if (is_partial_) {
      return Placement::Partial();
    }
    if (cut_ == ' ' || Names(field.fact->ignores, cut_)) {
      return Placement{};
    }
    if (Names(rule_.summed, cut_)) {
      return Placement::Partial();
    }
    Refuse(Kind::Cut, fmt::format("{} is cut over {} along a dim that {} does not have", cut_field_, ToText(axis_),
                                  field.fact->field));
    return std::nullopt;
  }
  auto IsMade() const -> bool {
    switch (rule_.made_over) {
      case MadeOver::None: return false;
      case MadeOver::DataAxes: return AxesSharing(Shared::Samples).Has(axis_);
      case MadeOver::VocabularyAxes: return AttributeOf<AxisSet>(op_.body_, "vocab_axes")->Has(axis_);
    }
    return false;
  }

  const PlacementRule& op_;
  const Plan& plan_;
  const OpFacts& facts_;
  const DimRule& rule_;
  Axis axis_;
  /// The ranks along the axis move shards or terms of this op's operand to one another.
  bool is_moved_;
  /// The letter that is cut in the operands, and the operand that said so.
  char cut_ = ' ';
  std::string_view cut_field_;
  bool is_partial_ = false;
  DerivedPlacements derived_;
};

auto PlacementRule::Over(Axis axis) const -> DerivedPlacements {
  return fields_.empty() ? DerivedPlacements{} : PlacementDerivation(*this, axis).Run();
}

auto DerivedPlacements::Of(std::string_view field) const -> std::optional<Placement> {
  const auto* found = std::ranges::find(results, field, &Result::field);
  return found == results.end() ? std::nullopt : std::optional(found->placement);
}

}  // namespace shardc
