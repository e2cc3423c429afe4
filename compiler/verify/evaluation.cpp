// The losses of the evaluation are those of the step: one model is trained and evaluated, on each batch that it loads.
// metrics.cpp judges the counts that divide them.
#include "compiler/ops/loss.h"
#include "compiler/plan/loops.h"
#include "compiler/verify/step_terms.h"

namespace shardc {

namespace {

/// Follows the evaluation on the samples of the step's first microbatch, and of its loop two passes on the same
/// samples: what is added up has each loss twice then.
class EvaluationVerifier {
 public:
  explicit EvaluationVerifier(StepTerms* step)
      : step_(*step), plan_(step->plan()), findings_(step->findings()), terms_(step->terms()) {}

  auto Run() -> void;

 private:
  auto RunOp(size_t index, SymbolicRun& evaluation) -> void;
  /// Puts what the step's first microbatch has in the place of what the op loads.
  auto LoadAsInStep(const Op& op, SymbolicRun& evaluation) -> void;

  StepTerms& step_;
  const Plan& plan_;
  Findings& findings_;
  Terms& terms_;
  /// Number of losses computed so far.
  size_t found_ = 0;
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
    const auto trained = SampleLoadOf(load);
    if (!trained || trained->targets.valid() != own.targets.valid()) {
      continue;
    }
    if (own.positions.valid()) {
      put(own.starts, trained->starts);
      put(own.positions, trained->positions);
    } else if (trained->head == own.head) {
      put(own.targets, trained->targets);
      step_.TermsOf(SectionKind::Eval).targets[own.head] = evaluation.Read(own.targets);
      if (own.tokens.valid() && trained->tokens.valid()) {
        put(own.tokens, trained->tokens);
        ++step_.TermsOf(SectionKind::Eval).passes;
      }
    }
  }
}

auto EvaluationVerifier::RunOp(size_t index, SymbolicRun& evaluation) -> void {
  const Op& op = plan_.section(SectionKind::Eval).ops[index];
  if (FactsOf(op).loads_samples) {
    LoadAsInStep(op, evaluation);
    return;
  }
  evaluation.Run(op);
  step_.CheckSums(SectionKind::Eval, index, evaluation);
  step_.NoteTold(SectionKind::Eval, index, op, evaluation);
  if (const auto own = LossOf(op)) {
    const std::vector<TermId>& losses = step_.losses();
    if (losses.empty() || step_.LossAdded(evaluation, own->loss) != losses[found_++ % losses.size()]) {
      findings_.AddOp(SectionKind::Eval, index, "eval-differs"_rule,
                      "computes another loss of the same samples than section step does");
    }
  }
}

auto EvaluationVerifier::Run() -> void {
  const std::vector<Op>& ops = plan_.section(SectionKind::Eval).ops;
  SymbolicRun evaluation(plan_, &terms_, step_.point());
  size_t& passes = step_.TermsOf(SectionKind::Eval).passes;
  passes = 0;
  size_t loop = 0;
  int64_t pass = 0;
  for (size_t i = 0; i < ops.size() && findings_.empty(); ++i) {
    switch (LoopEdgeOf(ops[i])) {
      case LoopEdge::None: RunOp(i, evaluation); break;
      case LoopEdge::Begin:
        loop = i;
        pass = 0;
        break;
      case LoopEdge::End:
        pass = pass == 0 && LoopCountOf(ops[loop]) > 1 ? 1 : 0;
        evaluation.set_repeat(pass);
        i = pass == 1 ? loop : i;
    }
  }
  const size_t expected = step_.losses().size() * passes;
  if (!ops.empty() && found_ != expected && findings_.empty()) {
    findings_.Add("eval-differs"_rule,
                  "section eval has {} terms of the loss in {} batches, section step has {} in one", found_, passes,
                  step_.losses().size());
  }
  findings_.Spend(evaluation.work());
}

}  // namespace

auto VerifyEvaluation(StepTerms& step) -> void { EvaluationVerifier(&step).Run(); }

}  // namespace shardc
