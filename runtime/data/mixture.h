// Which source each sample of a run comes from, and which of the source's samples it is.
//
// How many samples of a step come from which source is a matter of quotas (compiler/plan/sample_quotas.h). Which slots
// of the step they take:
// - order "shuffled": by a keyed permutation of the slots (shuffle.h), another one in each step, so that ranks and
// microbatches
//   each have a mixture.
// - order "sequential": spread evenly, each source's in its order: sample a of n, from 0, at (2a + 1) / (2n) of the
//   step; of two at one point, that of the source which is named first.
// Samples of a source are numbered over the whole run, without gaps.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/sample_quotas.h"

namespace shardc {

struct MixedSample {
  /// Number of the source.
  size_t source = 0;
  /// Running number of the sample among those of its source.
  int64_t index = 0;

  friend auto operator==(const MixedSample&, const MixedSample&) -> bool = default;
};

/// Not safe to use from two threads at once.
class Mixture {
 public:
  /// Requires: as SampleShares::Create. Errors: its, and those of SampleQuotas::Next at step 0.
  static auto Create(const DataSource& data, int64_t samples_per_step, RunSteps steps) -> ErrorOr<Mixture>;

  /// Where the sample with this running number is found. Errors: those of SampleQuotas::Next.
  /// Cost: constant in the step of the call before; a later step is reached through all between, an earlier one from
  ///   the first.
  auto At(int64_t index) -> ErrorOr<MixedSample>;

 private:
  Mixture(const DataSource& data, int64_t samples_per_step, SampleQuotas quotas);
  auto GoTo(int64_t step) -> Status;
  auto SpreadSlots() -> void;

  SampleOrder order_;
  uint64_t slot_seed_;
  int64_t samples_per_step_;
  SampleQuotas quotas_;
  /// Order "sequential": what each slot of the step holds.
  std::vector<MixedSample> slots_;
};

}  // namespace shardc
