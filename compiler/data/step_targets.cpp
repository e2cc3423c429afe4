#include "compiler/data/step_targets.h"

#include <algorithm>

#include "compiler/data/shuffle.h"
#include "compiler/plan/sample_quotas.h"

namespace shardc {

SampleTargets::SampleTargets(PackedSplit packed, bool in_files)
    : packed_(std::move(packed)), num_samples_(packed_->RowsOfEpoch(0)), in_files_(in_files) {}

SampleTargets::SampleTargets(const PackRule& rule, int64_t num_samples)
    : rule_(rule), num_samples_(num_samples), samples_(static_cast<size_t>(num_samples)) {}

auto SampleTargets::Add(Interval piece, int64_t targets) -> void {
  if (!packed_) {
    samples_[static_cast<size_t>(piece.begin / rule_.seq)] += static_cast<uint32_t>(targets);
  } else if (in_files_) {
    pieces_.emplace_back(piece.begin, targets);
  }
}

auto SampleTargets::OfPiece(Interval piece) const -> int64_t {
  if (!in_files_) {
    return piece.size() - 1;
  }
  const auto found = std::ranges::lower_bound(pieces_, piece.begin, {}, &std::pair<int64_t, int64_t>::first);
  CHECK(found != pieces_.end() && found->first == piece.begin, "no piece begins at id {}", piece.begin);
  return found->second;
}

auto SampleTargets::Of(int64_t index) -> int64_t {
  if (packed_) {
    int64_t targets = 0;
    for (const DocumentPiece& piece : packed_->Row(index)) {
      targets += OfPiece(piece.ids);
    }
    return targets;
  }
  const int64_t place = index % num_samples_;
  const bool is_shuffled = rule_.order == SampleOrder::Shuffled;
  const int64_t sample = is_shuffled ? ShuffledIndex(place, num_samples_, rule_.seed, index / num_samples_) : place;
  return samples_[static_cast<size_t>(sample)];
}

auto CountStepTargets(const Plan& plan, std::vector<SampleTargets>& sources) -> std::optional<StepTargets> {
  const int64_t per_step = SamplesPerStep(plan);
  int64_t all_samples = 0;
  std::vector<int64_t> next;
  for (size_t s = 0; s < sources.size(); ++s) {
    if (sources[s].num_samples() == 0) {
      return std::nullopt;
    }
    all_samples += sources[s].num_samples();
    next.push_back(plan.data.sources[s].first_sample);
  }
  int64_t num_steps = std::max<int64_t>(all_samples / per_step, 1);
  std::optional<SampleQuotas> quotas;
  if (plan.data.is_mixture()) {
    auto made = SampleQuotas::Create(plan.data, per_step, plan.run.schedule_steps());
    if (!made) {
      return std::nullopt;
    }
    quotas = *std::move(made);
    num_steps = std::min(num_steps, plan.run.steps);
  }
  StepTargets counted;
  int64_t sum = 0;
  for (bool has_shares = true; has_shares && counted.steps < num_steps;) {
    int64_t targets = 0;
    for (size_t s = 0; s < sources.size(); ++s) {
      for (const int64_t end = next[s] + (quotas ? quotas->counts()[s] : per_step); next[s] < end; ++next[s]) {
        targets += sources[s].Of(next[s]);
      }
    }
    counted.least = counted.steps == 0 ? targets : std::min(counted.least, targets);
    counted.most = std::max(counted.most, targets);
    counted.without += targets == 0 ? 1 : 0;
    sum += targets;
    ++counted.steps;
    has_shares = !quotas || counted.steps == num_steps || quotas->Next().ok();
  }
  counted.mean = static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(counted.steps, 1));
  return counted;
}

}  // namespace shardc
