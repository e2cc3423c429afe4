// A rank with what it runs: its plan bound to its device, section by section, the scalars, and the services of the ops.
// It runs one section or one step when it is asked to. When that is, and what is made of it, is up to the training
// (training_loop.h) and the runner.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/expr/step_evaluator.h"
#include "runtime/core/logits_watch.h"
#include "runtime/core/program.h"
#include "runtime/core/rank_binder.h"
#include "runtime/core/rank_main.h"
#include "runtime/core/trace.h"
#include "runtime/data/token_reader.h"
#include "runtime/metrics/metrics_writer.h"

namespace shardc {

class BoundRank {
 public:
  /// Binds nothing yet; the functions that prepare sections come next, in their order. `context` outlives the rank.
  explicit BoundRank(RankContext* context);
  BoundRank(const BoundRank&) = delete;
  auto operator=(const BoundRank&) -> BoundRank& = delete;

  /// Fills memory with the pattern of the guard, if the plan has it.
  auto StartGuard() -> Status;
  auto OpenTokens() -> Status;
  auto ReadSchedules() -> Status;
  /// Makes the graphs that repeat the launches of a step. Returns a warning if the context asks for graphs in vain;
  /// empty otherwise.
  auto MakeGraphs() -> std::string_view;
  /// Binds all sections but the one that reads a checkpoint. `algorithms`: of products, which binding adds to.
  auto BindSections(std::map<std::string, std::string>* algorithms) -> void;
  /// Binds a section, again if it was bound before.
  auto BindSection(SectionKind section) -> void;
  auto FreeSection(SectionKind section) -> void { programs_[static_cast<size_t>(section)].reset(); }
  /// Frees the kernels of all sections. On a device that is lost they stay: they hold what libraries have there.
  auto FreeSections() -> void;

  /// Runs one section as it stands.
  auto RunSection(SectionKind section) -> Status;
  /// Gives the scalars of schedules their values of the step that begins.
  auto SetSchedules() -> Status;
  /// Runs the sections of each step. Returns the exit code of a halt, if one is due.
  auto RunStep() -> ErrorOr<std::optional<ExitCode>>;
  auto CompletedSteps() const -> int64_t { return static_cast<int64_t>(Scalar(ScalarRole::Step)); }

  auto context() const -> const RankContext& { return context_; }
  auto plan() const -> const Plan& { return plan_; }
  auto control() -> RankControl& { return *context_.control; }
  auto device() -> RankDevice& { return *context_.device; }
  auto leads() const -> bool { return context_.rank == 0; }
  auto execution() -> Execution& { return execution_; }
  auto binder() -> RankBinder& { return binder_; }
  auto services() -> RankServices& { return services_; }
  auto tokens() -> TokenReader& { return *tokens_; }
  auto scalars() -> ScalarTable& { return scalars_; }
  auto Scalar(ScalarRole role) const -> double { return scalars_[plan_.ScalarOf(role)]; }
  /// Returns the metrics of this role, one per head.
  auto TermsOf(ScalarRole role) const -> std::vector<HeadLoss>;
  /// Returns the loss of a step or an evaluation; NaN if no position had a target, whatever the number of heads.
  auto LossOf(ScalarRole whole, ScalarRole term) const -> double;
  /// Returns the loss of the evaluation that has run; nothing if no held-out position has a target.
  auto EvalLoss() -> ErrorOr<std::optional<double>>;
  /// Checks that no rank was asked to stop while it answers a question about a checkpoint. Errors: Preempted, on all
  /// ranks alike, with how much of the answer is done. Collective.
  auto CheckStop(int64_t done, int64_t all, std::string_view noun) -> Status;
  /// Returns sums over the elements that this rank drew since it was made.
  auto drawn() const -> const IdVector<ParameterId, Drawn>& { return drawn_; }
  /// Returns how often each section ran.
  auto runs() const -> const std::array<int64_t, NumSections>& { return runs_; }
  /// Returns the guard; null if the plan has none.
  auto guard() const -> Guard* { return guard_.get(); }
  /// Returns the trace; null if none was asked for.
  auto trace() const -> Trace* { return trace_.get(); }
  /// Returns the watch of logits; null if they are not asked for.
  auto logits() const -> LogitsWatch* { return logits_.get(); }
  /// Prints whole lines for people.
  auto Say(std::string_view lines) const -> void;

  /// Called in RunStep, between the data and the step section.
  std::function<void()> after_data;

 private:
  RankContext& context_;
  const Plan& plan_;
  /// In guard mode.
  std::unique_ptr<Guard> guard_;
  Execution execution_;
  /// Graphs of the launches of a step; null if ops launch one by one.
  std::unique_ptr<LaunchGraphs> graphs_;
  ScalarTable scalars_;
  IdVector<ParameterId, Drawn> drawn_;
  RankServices services_;
  RankBinder binder_;
  std::unique_ptr<TokenReader> tokens_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<LogitsWatch> logits_;
  std::array<std::optional<Program>, NumSections> programs_;
  std::vector<std::pair<ScalarId, StepEvaluator>> schedules_;
  std::array<int64_t, NumSections> runs_{};
};

}  // namespace shardc
