#include "compiler/ops/placement_rule.h"

#include <algorithm>

#include "compiler/ops/ops.h"

namespace shardc {

namespace {

/// Follows one op over one axis.
class Derivation {
 public:
  Derivation(const OpBody& body, const AccessList& accesses, const Plan& plan, Axis axis)
      : body_(body),
        accesses_(accesses),
        plan_(plan),
        axis_(axis),
        facts_(FactsOf(body)),
        rule_(facts_.dims_of == nullptr ? facts_.dims : facts_.dims_of(body, plan)) {}

  auto is_known() const -> bool { return rule_.is_set(); }

  /// The placements of the results; what is wrong goes to `refusal`.
  auto Run(PlacementRefusal& refusal) -> std::vector<std::pair<std::string_view, Placement>> {
    for (const Access& access : accesses_) {
      if (access.kind == AccessKind::Read && !ReadOperand(access, refusal)) {
        return {};
      }
    }
    if (!IsEachCut(refusal)) {
      return {};
    }
    std::vector<std::pair<std::string_view, Placement>> results;
    for (const Access& access : accesses_) {
      const DimFact* fact = FactOf(access.field);
      if (access.kind != AccessKind::Read && fact != nullptr) {
        const auto placement = OfResult(*fact, access.value, refusal);
        if (!placement) {
          return {};
        }
        results.emplace_back(access.field, *placement);
      }
    }
    return results;
  }

 private:
  using Kind = PlacementRefusal::Kind;

  auto PlacementOf(ValueId id) const -> Placement { return plan_.values[id].placement[static_cast<size_t>(axis_)]; }
  auto FactOf(std::string_view field) const -> const DimFact* {
    const auto* found = std::ranges::find(rule_.fields, field, &DimFact::field);
    return found == rule_.fields.end() ? nullptr : found;
  }
  /// The letters of a value, one a dim: those that `*` stands for are a, b, c, ...
  auto LettersOf(const DimFact& fact, ValueId id) const -> std::string {
    const size_t dims = plan_.values[id].shape.size();
    std::string letters;
    for (const char letter : fact.letters) {
      if (letter != '*') {
        letters += letter;
        continue;
      }
      const size_t rest = fact.letters.size() - 1;
      for (size_t i = 0; i + rest < dims; ++i) {
        letters += static_cast<char>('a' + i);
      }
    }
    return letters;
  }
  static auto Names(std::string_view list, char letter) -> bool {
    const bool is_star = letter >= 'a' && letter <= 'z';
    return list.find(is_star ? '*' : letter) != std::string_view::npos;
  }
  /// The ranks along the axis move parts of this op's operand to one another.
  auto IsMoved() const -> bool {
    const auto* axes = facts_.collective == CollectiveKind::None ? nullptr : AttributeOf<AxisSet>(body_, "axes");
    return axes != nullptr && axes->Has(axis_);
  }

  /// What the collective takes over its axes: parts to gather, or terms to sum.
  auto ReadMoved(const Access& access, PlacementRefusal& refusal) const -> bool {
    const bool gathers = facts_.collective == CollectiveKind::AllGather;
    // Stacked, each rank's is one of a dim that the result has more.
    const bool stacks = gathers && rule_.fields[1].letters.size() > rule_.fields[0].letters.size();
    const Placement expected = stacks ? Placement{} : gathers ? Placement::Shard(0) : Placement::Partial();
    if (PlacementOf(access.value) != expected) {
      refusal = {Kind::WholeSummed,
                 fmt::format("{} {} over {}, along which the ranks have no {} of it", gathers ? "gathers" : "sums",
                             access.field, ToText(axis_), gathers ? "parts" : "terms")};
    }
    return !refusal.is_set();
  }

  auto ReadOperand(const Access& access, PlacementRefusal& refusal) -> bool {
    const DimFact* fact = FactOf(access.field);
    const Placement placement = PlacementOf(access.value);
    if (fact != nullptr && IsMoved()) {
      return ReadMoved(access, refusal);
    }
    if (fact == nullptr || placement == Placement{}) {
      return true;
    }
    if (placement == Placement::Partial()) {
      is_partial_ = true;
      const bool goes_on = facts_.meaning != Meaning::Computed && facts_.meaning != Meaning::Quotient;
      if (!goes_on && facts_.collective == CollectiveKind::None) {
        refusal = {Kind::PartialRead,
                   fmt::format("reads {}, which is a term of a sum over {}", access.field, ToText(axis_))};
      }
      return !refusal.is_set();
    }
    const std::string letters = LettersOf(*fact, access.value);
    const auto dim = static_cast<size_t>(placement.dim);
    const char cut = dim < letters.size() ? letters[dim] : '?';
    if (cut_ != ' ' && cut != cut_) {
      refusal = {Kind::Cut,
                 fmt::format("{} is cut over {} along another dim than {}", access.field, ToText(axis_), cut_field_)};
    } else if (cut == '?' || (cut >= '0' && cut <= '9') || Names(rule_.whole, cut)) {
      refusal = {Kind::Cut, fmt::format("{} is cut over {} along dim {}, which each rank needs whole", access.field,
                                        ToText(axis_), placement.dim)};
    }
    cut_ = cut;
    cut_field_ = access.field;
    return !refusal.is_set();
  }

  /// What has the letter that is cut is cut there.
  auto IsEachCut(PlacementRefusal& refusal) const -> bool {
    for (const Access& access : accesses_) {
      const DimFact* fact = FactOf(access.field);
      if (access.kind == AccessKind::Read && fact != nullptr && cut_ != ' ' &&
          LettersOf(*fact, access.value).find(cut_) != std::string::npos &&
          PlacementOf(access.value).kind != PlacementKind::Shard) {
        refusal = {Kind::Cut, fmt::format("{} is cut over {}, {} is not", cut_field_, ToText(axis_), access.field)};
        return false;
      }
    }
    return true;
  }

  auto OfResult(const DimFact& fact, ValueId id, PlacementRefusal& refusal) const -> std::optional<Placement> {
    if (IsMoved()) {
      switch (facts_.collective) {
        case CollectiveKind::AllGather:
        case CollectiveKind::AllReduce: return Placement{};
        case CollectiveKind::ReduceScatter: return Placement::Shard(0);
        case CollectiveKind::None:
        case CollectiveKind::Agree: break;
      }
    }
    const std::string letters = LettersOf(fact, id);
    const char letter = cut_ == ' ' && IsMade() ? rule_.made : cut_;
    if (const size_t dim = letters.find(letter); letter != ' ' && dim != std::string::npos) {
      return Placement::Shard(static_cast<int>(dim));
    }
    if (is_partial_) {
      return Placement::Partial();
    }
    if (cut_ == ' ' || Names(fact.ignores, cut_)) {
      return Placement{};
    }
    if (Names(rule_.summed, cut_)) {
      return Placement::Partial();
    }
    refusal = {Kind::Cut, fmt::format("{} is cut over {} along a dim that {} does not have", cut_field_, ToText(axis_),
                                      fact.field)};
    return std::nullopt;
  }
  auto IsMade() const -> bool {
    switch (rule_.made_over) {
      case MadeOver::None: return false;
      case MadeOver::DataAxes: return AxesSharing(Shared::Samples).Has(axis_);
      case MadeOver::VocabularyAxes: return AttributeOf<AxisSet>(body_, "vocab_axes")->Has(axis_);
    }
    return false;
  }

  const OpBody& body_;
  const AccessList& accesses_;
  const Plan& plan_;
  Axis axis_;
  const OpFacts& facts_;
  const DimRule& rule_;
  /// The letter that is cut in the operands, and the operand that said so.
  char cut_ = ' ';
  std::string_view cut_field_;
  bool is_partial_ = false;
};

}  // namespace

PlacementRule::PlacementRule(const OpBody& body, const AccessList& accesses, const Plan& plan, Axis axis) {
  Derivation derivation(body, accesses, plan, axis);
  if (derivation.is_known()) {
    results_ = derivation.Run(refusal_);
  }
}

auto PlacementRule::Of(std::string_view field) const -> std::optional<Placement> {
  const auto found = std::ranges::find(results_, field, &std::pair<std::string_view, Placement>::first);
  return found == results_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace shardc
