#include "compiler/ops/placement_rule.h"

#include <algorithm>

#include "compiler/ops/ops.h"

namespace shardc {

namespace {

/// The letters of a value with so many dims, one a dim: those that `*` stands for are a, b, c, ...
class Letters {
 public:
  Letters(const DimFact& fact, size_t dims)
      : letters_(fact.letters),
        star_(fact.star),
        num_starred_(star_ == letters_.size() || dims < letters_.size() ? 0 : dims + 1 - letters_.size()) {}

  /// '?' past the last one.
  auto Of(size_t dim) const -> char {
    if (dim >= star_ && dim < star_ + num_starred_) {
      return static_cast<char>('a' + (dim - star_));
    }
    const size_t at = dim < star_ ? dim : dim + 1 - num_starred_;
    return at < letters_.size() ? letters_[at] : '?';
  }
  auto DimOf(char letter) const -> std::optional<size_t> {
    if (letter >= 'a' && letter < 'a' + static_cast<int>(num_starred_)) {
      return star_ + static_cast<size_t>(letter - 'a');
    }
    for (size_t i = 0; i < letters_.size(); ++i) {
      if (letters_[i] == letter) {
        return i < star_ ? i : i + num_starred_ - 1;
      }
    }
    return std::nullopt;
  }

 private:
  std::string_view letters_;
  /// Where `*` stands, or the end, and for how many dims.
  size_t star_;
  size_t num_starred_;
};

}  // namespace

PlacementRule::PlacementRule(const OpBody& body, std::span<const Access> accesses, const Plan& plan)
    : body_(body), facts_(FactsOf(body)), rule_(facts_.dims_of == nullptr ? facts_.dims : facts_.dims_of(body, plan)) {
  const DimFact* const end = std::ranges::find(rule_.fields, std::string_view(), &DimFact::field);
  // Facts stand in the order of the fields, as a rule: each is looked for after the last one first.
  const DimFact* next = rule_.fields.begin();
  for (size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    const DimFact* fact = std::find_if(next, end, [&](const DimFact& own) { return own.field == access.field; });
    fact = fact == end ? std::ranges::find(rule_.fields.begin(), end, access.field, &DimFact::field) : fact;
    if (fact != end) {
      next = fact + 1;
      fields_.push_back({.value = &plan.values[access.value],
                         .fact = fact,
                         .access = static_cast<uint8_t>(i),
                         .is_operand = access.kind == AccessKind::Read});
    }
  }
}

/// Follows one op over one axis.
class PlacementDerivation {
 public:
  /// Fills in `derived`: the placements of the results, or what is wrong.
  PlacementDerivation(const PlacementRule& op, Axis axis, DerivedPlacements* derived)
      : op_(op), facts_(op.facts_), rule_(op.rule_), axis_(axis), is_moved_(IsMoved()), derived_(*derived) {}

  auto Run() -> void {
    for (const Field& field : op_.fields_) {
      if (field.is_operand && !ReadOperand(field)) {
        return;
      }
    }
    if (!IsEachCut()) {
      return;
    }
    for (const Field& field : op_.fields_) {
      if (!field.is_operand && !AddResult(field)) {
        return;
      }
    }
  }

 private:
  using Kind = PlacementRefusal::Kind;
  using Field = PlacementRule::Field;

  auto PlacementOf(const Field& field) const -> Placement { return field.value->placement[static_cast<size_t>(axis_)]; }
  auto Refuse(Kind kind, std::string text) -> void { derived_.refusal = {kind, std::move(text)}; }
  static auto LettersOf(const Field& field) -> Letters { return {*field.fact, field.value->shape.size()}; }
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
    const char cut = LettersOf(field).Of(static_cast<size_t>(placement.dim));
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
      if (field.is_operand && PlacementOf(field).kind != PlacementKind::Shard && LettersOf(field).DimOf(cut_)) {
        Refuse(Kind::Cut, fmt::format("{} is cut over {}, {} is not", cut_field_, ToText(axis_), field.fact->field));
        return false;
      }
    }
    return true;
  }

  auto AddResult(const Field& field) -> bool {
    const std::optional<Placement> placement = is_moved_ ? OfMoved() : OfResult(field);
    if (placement) {
      derived_.results[field.access] = placement;
    }
    return placement.has_value();
  }

  auto OfMoved() const -> Placement {
    return facts_.collective == CollectiveKind::ReduceScatter ? Placement::Shard(0) : Placement{};
  }

  auto OfResult(const Field& field) -> std::optional<Placement> {
    const char letter = cut_ == ' ' && IsMade() ? rule_.made : cut_;
    if (const auto dim = letter == ' ' ? std::nullopt : LettersOf(field).DimOf(letter)) {
      return Placement::Shard(static_cast<int>(*dim));
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
  const OpFacts& facts_;
  const DimRule& rule_;
  Axis axis_;
  /// The ranks along the axis move shards or terms of this op's operand to one another.
  bool is_moved_;
  /// The letter that is cut in the operands, and the operand that said so.
  char cut_ = ' ';
  std::string_view cut_field_;
  bool is_partial_ = false;
  DerivedPlacements& derived_;
};

auto PlacementRule::Over(Axis axis) const -> DerivedPlacements {
  DerivedPlacements derived;
  if (!fields_.empty()) {
    PlacementDerivation(*this, axis, &derived).Run();
  }
  return derived;
}

}  // namespace shardc
