// What is told of losses: the loss of the step, that of the evaluation and those of each head are means of the losses
// that the section computes. The sum of all losses of a head is divided by the count of all its targets; the whole loss
// is the sum of the heads' means, of which one may have a weight, the same in both sections.
//
// Over which ranks each sum goes is the matter of placements.cpp.
#include <map>
#include <set>

#include "compiler/ops/loss.h"
#include "compiler/verify/step_terms.h"

namespace shardc {

namespace {

class MetricVerifier {
 public:
  explicit MetricVerifier(StepTerms* step)
      : step_(*step), plan_(step->plan()), findings_(step->findings()), terms_(step->terms()) {}

  auto Run() -> void {
    for (const SectionKind section : {SectionKind::Step, SectionKind::Eval}) {
      for (const SectionTerms::Told& told : step_.TermsOf(section).told) {
        const Scalar& scalar = plan_.scalars[told.scalar];
        if (IsOfHead(scalar.role)) {
          CheckMean(section, told, told.term, scalar.head);
        } else if (scalar.role == ScalarRole::Loss || scalar.role == ScalarRole::EvalLoss) {
          CheckTotal(section, told);
        } else if (scalar.role == ScalarRole::Targets && !IsCount(section, told.term, plan_.OwnHead())) {
          Report(section, told, "{}, expected the count of the targets of the model's own head",
                 step_.Describe(told.term));
        }
      }
    }
  }

 private:
  /// Returns the term that was summed over ranks.
  auto BeforeRanks(TermId term) const -> TermId {
    while (terms_[term].facts().collective == CollectiveKind::AllReduce) {
      term = terms_[term].operands[0];
    }
    return term;
  }
  /// Returns the head whose losses are averaged; nothing if the term is not a mean of losses.
  auto HeadOf(TermId mean) const -> std::optional<HeadId> {
    if (terms_[mean].facts().meaning != Meaning::Quotient) {
      return std::nullopt;
    }
    const std::vector<TermId> losses = terms_.Addends(BeforeRanks(terms_[mean].operands[0]));
    if (losses.empty() || !terms_[losses.front()].facts().is_loss) {
      return std::nullopt;
    }
    return LossOf(*terms_[losses.front()].op)->head;
  }
  auto LossesOf(SectionKind section, HeadId head) const -> std::vector<TermId> {
    std::vector<TermId> losses;
    for (const auto& [own, loss] : step_.TermsOf(section).losses) {
      if (own == head) {
        losses.push_back(loss);
      }
    }
    return losses;
  }
  auto CheckTotal(SectionKind section, const SectionTerms::Told& told) -> void;
  /// Checks that a mean has all losses of the head, by the count of its targets. The count may be divided by a
  /// constant, the head's weight, in a part of the whole loss alone.
  auto CheckMean(SectionKind section, const SectionTerms::Told& told, TermId mean, HeadId head) -> void;
  auto IsCount(SectionKind section, TermId term, HeadId head) const -> bool;

  template <class... Args>
  auto Report(SectionKind section, const SectionTerms::Told& told, fmt::format_string<Args...> format, Args&&... args)
      -> void {
    findings_.AddOp(section, told.index, "loss-told"_rule, "tells as {} {}", plan_.scalars[told.scalar].name,
                    fmt::format(format, std::forward<Args>(args)...));
  }

  StepTerms& step_;
  const Plan& plan_;
  Findings& findings_;
  const Terms& terms_;
  std::map<HeadId, double> weights_;
};

auto MetricVerifier::CheckTotal(SectionKind section, const SectionTerms::Told& told) -> void {
  std::set<HeadId> left;
  for (const auto& [head, loss] : step_.TermsOf(section).losses) {
    left.insert(head);
  }
  for (const TermId mean : terms_.Addends(told.term)) {
    const auto head = HeadOf(mean);
    if (!head || left.erase(*head) == 0) {
      Report(section, told, "{}, expected the mean of the losses of each head", step_.Describe(mean));
      return;
    }
    CheckMean(section, told, mean, *head);
  }
  if (!left.empty()) {
    Report(section, told, "what has no losses of {} heads", left.size());
  }
}

auto MetricVerifier::CheckMean(SectionKind section, const SectionTerms::Told& told, TermId mean, HeadId head) -> void {
  if (HeadOf(mean) != head) {
    Report(section, told, "{}, expected a mean of the losses of its head", step_.Describe(mean));
    return;
  }
  const TermId sum = BeforeRanks(terms_[mean].operands[0]);
  if (terms_.Addends(sum) != LossesOf(section, head)) {
    Report(section, told, "{}, expected that of all losses of the section, each once", step_.Describe(sum));
    return;
  }
  TermId divisor = terms_[mean].operands[1];
  double weight = 1;
  const Term& quotient = terms_[divisor];
  if (!IsOfHead(plan_.scalars[told.scalar].role) && quotient.facts().meaning == Meaning::Quotient) {
    if (const auto constant = terms_[quotient.operands[1]].constant()) {
      weight = *constant;
      divisor = quotient.operands[0];
    }
  }
  if (!IsCount(section, divisor, head)) {
    Report(section, told, "a sum of losses divided by {}, expected the count of its targets",
           step_.Describe(BeforeRanks(divisor)));
    return;
  }
  if (!IsOfHead(plan_.scalars[told.scalar].role)) {
    if (const auto [found, fresh] = weights_.try_emplace(head, weight); found->second != weight) {
      Report(section, told, "a head with the weight {}, which section step has with {}", weight, found->second);
    }
  }
}

auto MetricVerifier::IsCount(SectionKind section, TermId term, HeadId head) const -> bool {
  const std::vector<TermId> counts = terms_.Addends(BeforeRanks(term));
  const auto& targets = step_.TermsOf(section).targets;
  const auto loaded = targets.find(head);
  return loaded != targets.end() && counts.size() == step_.TermsOf(section).passes &&
         std::ranges::all_of(counts, [&](TermId id) {
           const Term& count = terms_[id];
           return count.facts().sums_samples && !count.facts().is_loss &&
                  count.operands == std::vector<TermId>{loaded->second};
         });
}

}  // namespace

auto VerifyMetrics(StepTerms& step) -> void { MetricVerifier(&step).Run(); }

}  // namespace shardc
