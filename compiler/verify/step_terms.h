// A step followed on terms, and what its forward says that it has to come to: shared by the parts of the verifier that
// judge what a step computes.
//
// Of the microbatches two are followed, the first and the next: what the third finds is what the second found.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/verify/detached_terms.h"
#include "compiler/verify/internal.h"
#include "compiler/verify/symbolic.h"

namespace shardc {

/// Losses that a section reports, and the terms that they are made of.
struct SectionTerms {
  struct Told {
    size_t index = 0;
    ScalarId scalar;
    TermId term;
  };

  /// The targets of each head as the loader leaves them; in the step, those of all microbatches.
  std::map<HeadId, TermId> targets;
  /// The term that each op of a loss adds to the sum of its head.
  std::vector<std::pair<HeadId, TermId>> losses;
  /// The scalars that the ranks set.
  std::vector<Told> told;
  /// Number of times that the targets were loaded, and each loss was added to its sum.
  size_t passes = 1;
};

class StepTerms {
 public:
  /// The operands of a sub-vector's update; `is_made` is false if it has no update.
  struct Update {
    bool is_made = false;
    size_t index = 0;
    TermId gradient;
    TermId factor;
  };

  /// Follows the step on the rank at `point`. Findings are those of the walk itself.
  StepTerms(const Plan& plan, Findings& findings, const RankPoint& point);

  /// Follows the step to its end. False where there is a finding: nothing is known then.
  auto Follow() -> bool;

  auto plan() const -> const Plan& { return plan_; }
  auto findings() -> Findings& { return findings_; }
  auto terms() -> Terms& { return terms_; }
  auto point() const -> const RankPoint& { return point_; }
  auto UpdateOf(SubVectorId id) const -> const Update& { return updates_[static_cast<size_t>(id.index)]; }
  /// Returns the index of the control op, and its operand about gradients that are not finite.
  auto control() const -> const std::optional<std::pair<size_t, TermId>>& { return control_; }
  /// Returns the sum of each chunk of each head's loss, of the first microbatch.
  auto losses() const -> const std::vector<TermId>& { return losses_; }
  auto TermsOf(SectionKind section) -> SectionTerms& { return section_terms_[section]; }
  /// Notes what the last op of `run` told, and a loss that it added.
  auto NoteTold(SectionKind section, size_t index, const Op& op, const SymbolicRun& run) -> void;
  /// Returns the terms that the update of a parameter has to add up: those of the derived backward, of each microbatch.
  auto ExpectedOf(ParameterId id) const -> const std::vector<TermId>& {
    return expected_[static_cast<size_t>(id.index)];
  }

  /// Checks that what the last op of `run` added to began at zero.
  auto CheckSums(SectionKind section, size_t index, const SymbolicRun& run) -> void;
  /// Returns the term that the last op, a loss, adds to its sum.
  auto LossAdded(const SymbolicRun& run, ValueId loss) const -> TermId;
  /// Returns the index in the step of the op that made the term; nothing if the op was derived from the forward.
  auto IndexOf(const Term& term) const -> std::optional<size_t>;
  auto Describe(TermId id) const -> std::string;
  /// Returns the constants of an op as text: " transpose_a=true".
  auto ConstantsOf(const Op& op) const -> std::string;

 private:
  /// The loop over the microbatches, which has the forward: ops [body_begin, body_end) of the step.
  struct MicrobatchLoop {
    size_t body_begin = 0;
    size_t body_end = 0;
    int64_t microbatches = 1;
  };

  auto LoopOfStep() const -> MicrobatchLoop;
  auto FollowRange(size_t begin, size_t end) -> void;
  auto FollowOp(size_t index) -> void;
  /// Checks that gradients flow through all that a forward op reads of what is trained.
  auto CheckAttached(size_t index) -> void;
  /// Notes the whole of a unit's parameters, in the type that is computed in. Its parts are known as parameters from
  /// here on.
  auto KnowVector(SubVectorId id, TermId vector) -> void;
  /// Makes the backward from the forward; false if it has none.
  auto Derive(const MicrobatchLoop& loop) -> bool;
  /// Returns the forward op with each parameter under one name, wherever it is read.
  auto ForwardOf(const Op& op) -> Op;
  auto ParameterNamed(ParameterId id, ValueId read) -> ValueId;
  /// Follows the backward that was made, on the terms of the forward of this microbatch.
  auto ExpectMicrobatch() -> void;

  const Plan& plan_;
  Findings& findings_;
  const std::vector<Op>& ops_;
  RankPoint point_;
  Terms terms_;
  SymbolicRun run_;
  DetachedTerms detached_;
  /// The work of `run_` that was already spent from the budget of the findings.
  size_t spent_ = 0;
  int microbatches_ = 0;
  std::unordered_map<TermId, SubVectorId> vector_of_slice_;
  std::unordered_map<TermId, ParameterId> parameter_of_term_;

  /// Tables for the backward that is made: the plan's, with one value for each parameter, and the gradients.
  Plan scratch_;
  std::unordered_map<int32_t, ValueId> parameter_values_;
  std::vector<Op> derived_;
  std::map<ParameterId, ValueId> derived_gradients_;
  /// Terms of the values of the forward: those outside of the loop, and all of this microbatch.
  std::unordered_map<ValueId, TermId> outer_terms_;
  std::unordered_map<ValueId, TermId> forward_terms_;

  std::vector<TermId> losses_;
  std::map<SectionKind, SectionTerms> section_terms_;
  std::vector<Update> updates_;
  std::optional<std::pair<size_t, TermId>> control_;
  std::vector<std::vector<TermId>> expected_;
};

// The parts that look at a step which was followed.
auto VerifyGradients(StepTerms& step) -> void;
auto VerifyNorm(StepTerms& step) -> void;
auto VerifyEvaluation(StepTerms& step) -> void;
auto VerifyMetrics(StepTerms& step) -> void;

}  // namespace shardc
