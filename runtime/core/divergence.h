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

  /// Collective, after each step. The lines to tell, where there are any: at the first of steps one after another that
  /// were not finite, which is looked into at the cost of a step, or whose losses were spikes; at the end of them; and
  /// where one ends the run. So
  /// that a long run does not flood its log, no more than MostTold of these are told.
  /// `newest`: of this run's checkpoints; empty if the run has none.
  auto AfterStep(bool ends_run, const std::string& newest) -> ErrorOr<std::string>;
  /// Why the last step's update was left out: "nonfinite" or "spike"; empty if it was made.
  auto Skipped() const -> std::string_view;

  /// The error of a save, with what to do about it where the state is not finite.
  auto OfSave(const Error& error, const std::string& newest) const -> Error;

  static constexpr int MostTold = 20;

 private:
  auto Number(ScalarRole scalar) const -> double;
  /// 0 if the plan has no scalar of that role.
  auto NumberOrZero(ScalarRole scalar) const -> double;
  /// Of a run that the last step ends: do the updates left out one after another end it, and not this step alone?
  auto EndsByCount() const -> bool;
  /// The lines about a spike.
  auto OfSpike(bool ends_run) const -> std::string;
  auto Remedies(bool is_state, const std::string& newest) const -> std::string;

  RankBinder& binder_;
  const Execution& execution_;
  int told_ = 0;
  /// Steps one after another, up to now.
  int64_t in_a_row_ = 0;
  bool is_told_ = false;
  /// Skipped() of the last step.
  std::string_view last_;
};

}  // namespace shardc
