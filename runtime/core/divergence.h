// What a run says of steps and states that are not finite, and of losses that are spikes: what it was, and what to do.
// It decides nothing: the plan says whether an update is made, is left out or ends the run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/execution.h"
#include "runtime/core/rank_binder.h"

namespace shardc {

class Divergence {
 public:
  Divergence(RankBinder& binder, const Execution& execution) : binder_(binder), execution_(execution) {}

  /// Returns lines to report after a step, if there are any: at the first of several steps that were not finite (its
  /// cause is looked for, at the cost of a step) or whose losses were spikes, at the end of them, and if one ends the
  /// run. It returns at most MostTold of these lines, so that a long run does not flood its log. Collective.
  /// `newest`: the newest of this run's checkpoints; empty if the run has none.
  auto AfterStep(bool ends_run, const std::string& newest) -> ErrorOr<std::string>;
  /// Returns why the last step's update was left out: "nonfinite" or "spike"; empty if it was made.
  auto Skipped() const -> std::string_view;

  /// Takes the checkpoint that the run was resumed from, and the one before it; empty if that was the first.
  auto ResumesFrom(const std::string& checkpoint, const std::string& before) -> void;

  /// Returns the error of a save, with advice if the state is not finite.
  auto OfSave(const Error& error, const std::string& newest) const -> Error;

  static constexpr int MostTold = 20;

 private:
  auto Number(ScalarRole scalar) const -> double;
  /// Returns the value of the scalar with this role; 0 if the plan has no such scalar.
  auto NumberOrZero(ScalarRole scalar) const -> double;
  /// Returns true if the last step ends the run by the number of updates left out one after another, and not by itself.
  auto EndsByCount() const -> bool;
  /// Returns the lines about a spike.
  auto OfSpike(bool ends_run) const -> std::string;
  /// Returns what to do about losses that stay: they are a new level, or an update before them broke the model.
  auto LevelRemedies() const -> std::string;
  auto Remedies(bool is_state, const std::string& newest) const -> std::string;

  RankBinder& binder_;
  const Execution& execution_;
  /// From ResumesFrom, until an update was made; empty after it.
  std::string resumed_from_;
  std::string before_it_;
  int told_ = 0;
  /// Steps one after another, up to now.
  int64_t in_a_row_ = 0;
  /// The most standard deviations that one of their losses lay above the mean.
  double farthest_ = 0;
  bool is_told_ = false;
  /// Skipped() of the last step.
  std::string_view last_;
};

}  // namespace shardc
