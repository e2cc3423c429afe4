#include "runtime/data/mixture.h"

#include "compiler/base/check.h"
#include "compiler/data/shuffle.h"

namespace shardc {

Mixture::Mixture(const DataSource& data, int64_t samples_per_step, SampleQuotas quotas)
    : order_(data.order),
      // No source has this name.
      slot_seed_(DerivedSeed(data.seed, "slots of a step")),
      samples_per_step_(samples_per_step),
      quotas_(std::move(quotas)) {
  SpreadSlots();
}

auto Mixture::Create(const DataSource& data, int64_t samples_per_step, RunSteps steps) -> ErrorOr<Mixture> {
  ASSIGN_OR_RETURN(auto quotas, SampleQuotas::Create(data, samples_per_step, steps));
  return Mixture(data, samples_per_step, std::move(quotas));
}

auto Mixture::GoTo(int64_t step) -> Status {
  if (step == quotas_.step()) {
    return Success{};
  }
  if (step < quotas_.step()) {
    RETURN_IF_ERROR(quotas_.Rewind());
  }
  while (quotas_.step() < step) {
    RETURN_IF_ERROR(quotas_.Next());
  }
  SpreadSlots();
  return Success{};
}

auto Mixture::SpreadSlots() -> void {
  if (order_ != SampleOrder::Sequential) {
    return;
  }
  const std::vector<int64_t>& counts = quotas_.counts();
  std::vector<int64_t> given(counts.size(), 0);
  slots_.clear();
  while (static_cast<int64_t>(slots_.size()) < samples_per_step_) {
    size_t next = counts.size();
    for (size_t s = 0; s < counts.size(); ++s) {
      const auto is_before = [&](size_t other) {
        return (2 * given[s] + 1) * counts[other] < (2 * given[other] + 1) * counts[s];
      };
      if (given[s] < counts[s] && (next == counts.size() || is_before(next))) {
        next = s;
      }
    }
    slots_.push_back({next, quotas_.taken()[next] + given[next]});
    ++given[next];
  }
}

auto Mixture::At(int64_t index) -> ErrorOr<MixedSample> {
  CHECK(index >= 0, "sample {}", index);
  const int64_t step = index / samples_per_step_;
  RETURN_IF_ERROR(GoTo(step));
  int64_t slot = index % samples_per_step_;
  if (order_ == SampleOrder::Sequential) {
    return slots_[static_cast<size_t>(slot)];
  }
  slot = ShuffledIndex(slot, samples_per_step_, slot_seed_, step);
  for (size_t s = 0; s < quotas_.counts().size(); ++s) {
    if (slot < quotas_.counts()[s]) {
      return MixedSample{s, quotas_.taken()[s] + slot};
    }
    slot -= quotas_.counts()[s];
  }
  CHECK(false, "the counts of step {} do not sum to {}", step, samples_per_step_);
}

}  // namespace shardc
