// How many samples of a step come from which source: whole numbers by rule, not draws, so that they are the same on
// every mesh and after every restart.
//
// The target of a source after step t is the sum of its shares (sample_shares.h) in steps 0 ... t. Its sample j (from
// 1) is released at the first step after which the target exceeds j - 1, and due at the first step after which the
// target reaches j. At each step
// 1. all samples are taken that are due by then;
// 2. of those that are released, the ones that are due soonest fill the step; of two that are due at one step, that of
//    the source which is further below its target, then that of the source which is named first.
//
// Counts of a step are 0 or more and sum to samples_per_step, and after each step what was taken from a source differs
// from its target by less than one sample, on either side. For the targets themselves are a way to take a part of each
// sample in the steps from its first to its due one, such that every step is full. Where there is such a way, there is
// one that takes samples whole, and taking what is due soonest finds it: they are unit jobs with release times and
// deadlines. A rule that knows nothing of later weights cannot promise that of four sources or more.
//
// Source: Tijdeman 1980, "The chairman assignment problem", Discrete Mathematics 32; Steiner, Yeomans 1993, "Level
// schedules for mixed-model, just-in-time processes", Management Science 39.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/plan/sample_shares.h"

namespace shardc {

/// The counts of one step after another. Memory: that of the sources, whatever the number of steps.
class SampleQuotas {
 public:
  /// Makes the quotas of step 0. Requires and errors: as SampleShares::Create; and errors as Next.
  static auto Create(const DataSource& data, int64_t samples_per_step, RunSteps steps) -> ErrorOr<SampleQuotas>;

  /// Returns the step that the counts are of.
  auto step() const -> int64_t { return step_; }
  /// Returns how many of its samples come from each source, and how many came from each before it.
  auto counts() const -> const std::vector<int64_t>& { return counts_; }
  auto taken() const -> const std::vector<int64_t>& { return taken_; }

  /// Moves to the next step.
  /// Errors: those of SampleShares::At, of this step or of one that was looked at to see what is due soonest.
  /// Cost: over a run each step is looked at once for itself, and at most once more for each source.
  auto Next() -> Status;
  /// Goes back to step 0. Errors: as Next.
  auto Rewind() -> Status;

 private:
  explicit SampleQuotas(SampleShares shares);
  auto SharesAt(int64_t step) -> ErrorOr<const std::vector<int64_t>*>;
  auto FillStep() -> Status;
  auto TakeDueSoonest(int64_t open) -> Status;
  auto Take(size_t source) -> void;

  SampleShares shares_;
  int64_t step_ = 0;
  std::vector<int64_t> taken_;
  std::vector<int64_t> counts_;
  /// Target less what was taken, in units.
  std::vector<int64_t> shortfall_;
  /// Sources of which a sample may be taken that is not due yet; units to go until it is.
  std::vector<size_t> waiting_;
  std::vector<int64_t> to_go_;
  /// Shares of steps looked at last, each at its step modulo their number; none: -1.
  std::vector<std::vector<int64_t>> recent_;
  std::vector<int64_t> recent_steps_;
};

/// The weights of a mixture, over the number of steps that a run has.
struct RunWeights {
  const DataSource& data;
  RunSteps steps;
};

/// Returns the first of `num_steps` steps in which two mixtures of the same sources take other numbers of samples; -1
/// if they take the same. Requires: as SampleShares::Create. Errors: as SampleQuotas::Next. Cost: as that of both runs,
/// up to there.
auto FirstOtherStep(const RunWeights& weights, const RunWeights& others, int64_t samples_per_step, int64_t num_steps)
    -> ErrorOr<int64_t>;

}  // namespace shardc
