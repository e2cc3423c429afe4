// The losses of the evaluation are those of the step: one model is trained and evaluated. What they are divided by is
// the matter of metrics.cpp.
#include "compiler/ops/loss.h"
#include "compiler/plan/loops.h"
#include "compiler/verify/step_terms.h"

namespace shardc {

namespace {

/// Follows the evaluation on the samples of the step's first microbatch.
class EvaluationVerifier {
 public:
  explicit EvaluationVerifier(StepTerms* step)
      : step_(*step), plan_(step->plan()), findings_(step->findings()), terms_(step->terms()) {}

  auto Run() -> void;

 private:
  /// Puts what the step's first microbatch has in the place of what the op loads.
  auto LoadAsInStep(const Op& op, SymbolicRun& evaluation) -> void;

  StepTerms& step_;
  const Plan& plan_;
  Findings& findings_;
  Terms& terms_;
};

auto EvaluationVerifier::LoadAsInStep(const Op& op, SymbolicRun& evaluation) -> void {
  const SampleLoad own = *SampleLoadOf(op);
  const auto put = [&](ValueId loaded, ValueId trained) {
    const BufferId buffer = plan_.values[trained].buffer;
    const int64_t bytes = plan_.values[loaded].bytes().value;
    const int64_t all = plan_.buffers[buffer].bytes.value;
    if (bytes <= all) {
      evaluation.Put(loaded, terms_.Slice(terms_.Memory(buffer, all), 0, bytes));
    }
  };
  for (const Op& load : plan_.section(SectionKind::Data).ops) {
    if (const auto trained = SampleLoadOf(load); trained && trained->head == own.head) {
      put(own.targets, trained->targets);
      step_.TermsOf(SectionKind::Eval).targets[own.head] = evaluation.Read(own.targets);
      if (own.tokens.valid() && trained->tokens.valid()) {
        put(own.tokens, trained->tokens);
      }
    }
  }
}

auto EvaluationVerifier::Run() -> void {
  const std::vector<Op>& ops = plan_.section(SectionKind::Eval).ops;
  const std::vector<TermId>& losses = step_.losses();
  SymbolicRun evaluation(plan_, &terms_, step_.point());
  size_t found = 0;
  for (size_t i = 0; i < ops.size() && findings_.empty(); ++i) {
    const Op& op = ops[i];
    if (FactsOf(op).loads_samples) {
      LoadAsInStep(op, evaluation);
    } else if (LoopEdgeOf(op) == LoopEdge::None) {
      evaluation.Run(op);
      step_.CheckSums(SectionKind::Eval, i, evaluation);
      step_.NoteTold(SectionKind::Eval, i, op, evaluation);
    }
    const auto own = LossOf(op);
    if (!own) {
      continue;
    }
    const TermId loss = step_.LossAdded(evaluation, own->loss);
    if (found >= losses.size() || loss != losses[found]) {
      findings_.AddOp(SectionKind::Eval, i, "eval-differs"_rule,
                      "computes another loss of the same samples than section step does{}",
                      found < losses.size() ? "" : ", which has fewer terms");
    }
    ++found;
  }
  if (!ops.empty() && found < losses.size() && findings_.empty()) {
    findings_.Add("eval-differs"_rule, "section eval has {} terms of the loss, section step {}", found, losses.size());
  }
  findings_.Spend(evaluation.work());
}

}  // namespace

auto VerifyEvaluation(StepTerms& step) -> void { EvaluationVerifier(&step).Run(); }

}  // namespace shardc
