#include "compiler/plan/sample_quotas.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/base/check.h"

namespace shardc {

constexpr int64_t NumRecentSteps = 64;

SampleQuotas::SampleQuotas(SampleShares shares)
    : shares_(std::move(shares)), recent_(NumRecentSteps), recent_steps_(NumRecentSteps, -1) {}

auto SampleQuotas::Create(const DataSource& data, int64_t samples_per_step, RunSteps steps) -> ErrorOr<SampleQuotas> {
  ASSIGN_OR_RETURN(auto shares, SampleShares::Create(data, samples_per_step, steps));
  SampleQuotas quotas(std::move(shares));
  RETURN_IF_ERROR(quotas.Rewind());
  return quotas;
}

auto SampleQuotas::Rewind() -> Status {
  const size_t num_sources = shares_.num_sources();
  step_ = 0;
  taken_.assign(num_sources, 0);
  counts_.assign(num_sources, 0);
  shortfall_.assign(num_sources, 0);
  to_go_.assign(num_sources, 0);
  return FillStep();
}

auto SampleQuotas::Next() -> Status {
  for (size_t s = 0; s < taken_.size(); ++s) {
    taken_[s] += counts_[s];
  }
  ++step_;
  return FillStep();
}

auto SampleQuotas::SharesAt(int64_t step) -> ErrorOr<const std::vector<int64_t>*> {
  const int64_t at = std::min(step, shares_.last_change());
  const auto slot = static_cast<size_t>(at % NumRecentSteps);
  if (recent_steps_[slot] != at) {
    recent_steps_[slot] = -1;
    RETURN_IF_ERROR(shares_.At(at, recent_[slot]));
    recent_steps_[slot] = at;
  }
  return &recent_[slot];
}

auto SampleQuotas::Take(size_t source) -> void {
  ++counts_[source];
  shortfall_[source] -= SampleUnit;
}

auto SampleQuotas::FillStep() -> Status {
  ASSIGN_OR_RETURN(const auto shares, SharesAt(step_));
  int64_t open = shares_.samples_per_step();
  waiting_.clear();
  for (size_t s = 0; s < shortfall_.size(); ++s) {
    shortfall_[s] += (*shares)[s];
    counts_[s] = std::max<int64_t>(shortfall_[s], 0) >> SampleUnitBits;
    shortfall_[s] -= counts_[s] << SampleUnitBits;
    open -= counts_[s];
    if (shortfall_[s] > 0) {
      waiting_.push_back(s);
    }
  }
  CHECK(0 <= open && open <= static_cast<int64_t>(waiting_.size()), "step {}: {} of {} samples open, {} sources wait",
        step_, open, shares_.samples_per_step(), waiting_.size());
  return TakeDueSoonest(open);
}

auto SampleQuotas::TakeDueSoonest(int64_t open) -> Status {
  if (open == static_cast<int64_t>(waiting_.size())) {
    std::for_each(waiting_.begin(), waiting_.end(), [&](size_t s) { Take(s); });
    return Success{};
  }
  if (open == 0) {
    return Success{};
  }
  // Of two that turn out to be due at one step, the one that stands first.
  const auto is_first = [&](size_t a, size_t b) { return std::pair(-shortfall_[a], a) < std::pair(-shortfall_[b], b); };
  std::sort(waiting_.begin(), waiting_.end(), is_first);
  for (const size_t s : waiting_) {
    to_go_[s] = SampleUnit - shortfall_[s];
  }
  // While shares change, step by step. The steps that are looked at until a source's sample is due do not overlap,
  // as its next sample may be taken from there on only.
  int64_t step = step_ + 1;
  for (; open > 0 && step < shares_.last_change(); ++step) {
    ASSIGN_OR_RETURN(const auto shares, SharesAt(step));
    const auto take_if_due = [&](size_t s) {
      to_go_[s] -= (*shares)[s];
      const bool due = to_go_[s] <= 0 && open > 0;
      if (due) {
        Take(s);
        --open;
      }
      return due;
    };
    waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), take_if_due), waiting_.end());
  }
  if (open == 0) {
    return Success{};
  }
  // From there on in one.
  ASSIGN_OR_RETURN(const auto shares, SharesAt(step));
  const auto steps_to_go = [&](size_t s) {
    const int64_t share = (*shares)[s];
    return share == 0 ? std::numeric_limits<int64_t>::max() : (to_go_[s] + share - 1) / share;
  };
  std::sort(waiting_.begin(), waiting_.end(), [&](size_t a, size_t b) {
    return steps_to_go(a) != steps_to_go(b) ? steps_to_go(a) < steps_to_go(b) : is_first(a, b);
  });
  std::for_each(waiting_.begin(), waiting_.begin() + open, [&](size_t s) { Take(s); });
  return Success{};
}

auto FirstOtherStep(const RunWeights& weights, const RunWeights& others, int64_t samples_per_step, int64_t num_steps)
    -> ErrorOr<int64_t> {
  auto one = SampleQuotas::Create(weights.data, samples_per_step, weights.steps);
  auto other = SampleQuotas::Create(others.data, samples_per_step, others.steps);
  if (!one || !other) {
    return one ? other.error() : one.error();
  }
  while (one->step() < num_steps) {
    if (one->counts() != other->counts()) {
      return one->step();
    }
    RETURN_IF_ERROR(one->Next());
    RETURN_IF_ERROR(other->Next());
  }
  return int64_t{-1};
}

}  // namespace shardc
