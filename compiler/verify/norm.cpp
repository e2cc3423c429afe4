// What an update takes besides its gradient: the norm has the squares of every vector that is trained once, summed over
// all ranks that have owned segments of it; and each of these vectors is looked through for what is not finite.
#include "compiler/ops/term_axes.h"
#include "compiler/verify/step_terms.h"

namespace shardc {

namespace {

class NormVerifier {
 public:
  explicit NormVerifier(StepTerms* step)
      : step_(*step), plan_(step->plan()), findings_(step->findings()), terms_(step->terms()) {}

  auto Run() -> void;

 private:
  auto NameOf(SubVectorId id) const -> std::string { return shardc::NameOf(plan_, plan_.sub_vectors[id]); }
  /// Asks that `chain` adds up result `result` of one sum_squares of each vector that is trained. `summed`: with the
  /// axes over which the squares are to be summed.
  auto CheckSquares(size_t index, std::string_view field, TermId chain, int result, bool summed) -> void;

  StepTerms& step_;
  const Plan& plan_;
  Findings& findings_;
  const Terms& terms_;
};

auto NormVerifier::CheckSquares(size_t index, std::string_view field, TermId chain, int result, bool summed) -> void {
  std::vector<int> counts(static_cast<size_t>(plan_.sub_vectors.size()), 0);
  AxisSet axes;
  for (bool more = true; more;) {
    const Term term = terms_[chain];
    if (term.facts().collective == CollectiveKind::AllReduce) {
      const AxisSet own = Spread(plan_.mesh, CollectiveOf(*term.op)->axes);
      if (!summed || axes.Without(own) != axes) {
        findings_.AddOp(SectionKind::Step, index, "squares"_rule, "{} is summed over {}{}", field, ToText(own),
                        summed ? " again" : ", expected what the rank found itself");
        return;
      }
      axes = axes | own;
      chain = term.operands[0];
      continue;
    }
    more = term.kind == TermKind::Sum;
    const Term& squares = terms_[more ? term.operands[1] : chain];
    if (squares.facts().update != UpdatePart::Squares || squares.result != result) {
      findings_.AddOp(SectionKind::Step, index, "squares"_rule, "{} adds up {}, expected sums of squares of gradients",
                      field, step_.Describe(more ? term.operands[1] : chain));
      return;
    }
    const SubVectorId id = StateTouchOf(*squares.op).sub_vector;
    const AxisSet over = SquaresAxes(plan_.mesh, plan_.sub_vectors[id]);
    if (summed && axes != over) {
      findings_.AddOp(SectionKind::Step, index, "squares"_rule, "{} has the squares of {} summed over {}, expected {}",
                      field, NameOf(id), ToText(axes), ToText(over));
    }
    ++counts[static_cast<size_t>(id.index)];
    const StepTerms::Update& update = step_.UpdateOf(id);
    if (update.is_made && update.gradient != squares.operands[0]) {
      findings_.AddOp(SectionKind::Step, index, "squares"_rule,
                      "{} has squares of {} that are not those of the gradient that updates it", field, NameOf(id));
    }
    chain = more ? term.operands[0] : chain;
  }
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    const int expected = plan_.sub_vectors[id].trainable ? 1 : 0;
    if (const int count = counts[static_cast<size_t>(id.index)]; count != expected) {
      findings_.AddOp(SectionKind::Step, index, "squares"_rule, "{} has the squares of {} {} times, expected {}", field,
                      NameOf(id), count, expected);
    }
  }
}

auto NormVerifier::Run() -> void {
  TermId checked;
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    const StepTerms::Update& update = step_.UpdateOf(id);
    if (!update.is_made || update.factor == checked) {
      continue;
    }
    if (checked.valid()) {
      findings_.AddOp(SectionKind::Step, update.index, "clip-factor"_rule,
                      "scales by another factor than the updates before it");
      continue;
    }
    checked = update.factor;
    const Term& factor = terms_[checked];
    if (factor.facts().update != UpdatePart::Clip || factor.result != 1) {
      findings_.AddOp(SectionKind::Step, update.index, "clip-factor"_rule,
                      "scales by {}, expected the factor of clip_factor", step_.Describe(checked));
      continue;
    }
    CheckSquares(*step_.IndexOf(factor), "sum", factor.operands[0], 0, true);
  }
  if (const auto& control = step_.control()) {
    CheckSquares(control->first, "bad", control->second, 1, false);
  }
}

}  // namespace

auto VerifyNorm(StepTerms& step) -> void { NormVerifier(&step).Run(); }

}  // namespace shardc
