#include "compiler/checkpoint/stage.h"

#include <algorithm>
#include <numeric>

#include "compiler/base/plan_limits.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/checkpoint/checked_multiply.h"
#include "compiler/checkpoint/pieces.h"
#include "compiler/plan/header.h"
#include "compiler/plan/init_rule.h"
#include "compiler/plan/sample_quotas.h"

namespace shardc {

/// Returns how many samples a run took of each of its sources.
static auto SamplesTaken(const Manifest& manifest) -> ErrorOr<std::map<std::string, int64_t>> {
  const ManifestData& data = manifest.data;
  const int64_t samples_per_step = data.seq == 0 ? 0 : data.tokens_per_step / data.seq;
  const auto before = [&](size_t source) {
    return source < data.first_samples.size() ? data.first_samples[source] : 0;
  };
  ASSIGN_OR_RETURN(const auto all, CheckedMultiply(manifest.step, samples_per_step));
  const int64_t most_per_step = data.sources.empty() ? MostCount : MostMixedSamples;
  FAIL_IF(
      samples_per_step < 1 || samples_per_step > most_per_step || all > MostCount, ExitCode::Checkpoint,
      "by its manifest, {} tokens per step of samples of {}, nobody can tell which samples were taken; add \"data\" "
      "to `reset`",
      data.tokens_per_step, data.seq);
  if (data.sources.empty()) {
    return std::map<std::string, int64_t>{{"", before(0) + all}};
  }
  DataSource mixture;
  for (const ManifestSource& source : data.sources) {
    mixture.sources.push_back({.name = source.name, .weight = source.weight, .files = {}});
  }
  ASSIGN_OR_RETURN(auto quotas,
                   SampleQuotas::Create(mixture, samples_per_step, {data.steps, manifest.seed.first_step}));
  while (quotas.step() < manifest.step) {
    RETURN_IF_ERROR(quotas.Next());
  }
  std::map<std::string, int64_t> samples;
  for (size_t s = 0; s < mixture.sources.size(); ++s) {
    samples[mixture.sources[s].name] = before(s) + quotas.taken()[s];
  }
  return samples;
}

auto KeptBy(const Plan& plan) -> KeepsPart {
  if (const auto first = KeysOf(plan).start.first) {
    return [first = *first](StagePart part) { return first.Keeps(part); };
  }
  return
      [updates = plan.seed.updates, first_step = plan.run.first_step, goes_on = plan.data.goes_on()](StagePart part) {
        switch (part) {
          case StagePart::Moments: return updates > 0;
          case StagePart::Schedule: return first_step > 0;
          case StagePart::Data: return goes_on;
        }
        CHECK(false, "part {}", static_cast<int>(part));
      };
}

auto StageOf(const Manifest& manifest, const KeepsPart& keeps) -> ErrorOr<Stage> {
  Stage stage{.steps_before = manifest.seed.steps_before + manifest.step};
  if (const auto updates = manifest.state.find("updates");
      keeps(StagePart::Moments) && updates != manifest.state.end()) {
    stage.updates = static_cast<int64_t>(updates->second);
  }
  if (keeps(StagePart::Schedule)) {
    stage.first_step = manifest.seed.first_step + manifest.step;
  }
  if (keeps(StagePart::Data)) {
    ASSIGN_OR_RETURN(stage.samples, SamplesTaken(manifest));
  }
  return stage;
}

auto StageFault(const Manifest& manifest, const Plan& plan, const KeepsPart& keeps) -> std::string {
  std::string faults;
  const auto compare = [&](StagePart part, std::string_view key, const auto& there, const auto& here) {
    if (keeps(part) && there != here) {
      faults += fmt::format("{}`{}` is {} there, {} here; put it back, or add \"{}\" to `reset`",
                            faults.empty() ? "" : "; ", key, there, here, ToText(part));
    }
  };
  compare(StagePart::Moments, "optimizer.name", ToText(manifest.optimizer), ToText(plan.run.optimizer));
  const ManifestData& data = manifest.data;
  const auto kind = [](bool is_mixture) { return is_mixture ? "`data.source`" : "`data.tokens`"; };
  compare(StagePart::Data, "data", std::string_view(kind(!data.sources.empty())), kind(plan.data.is_mixture()));
  compare(StagePart::Data, "data.order", ToText(data.order), ToText(plan.data.order));
  compare(StagePart::Data, "data.seed", data.seed, plan.data.seed);
  compare(StagePart::Data, "data.pack", ToText(data.pack), ToText(plan.data.pack));
  compare(StagePart::Data, "data.eval_tokens", data.eval_tokens, plan.data.eval_tokens);
  compare(StagePart::Data, "model.seq", data.seq, plan.data.seq);
  return faults;
}

/// Returns true if the checkpoint has all that the optimizer may keep of the tensor.
static auto HasMoments(const Manifest& manifest, const ManifestTensor& tensor, Optimizer optimizer) -> bool {
  const auto roles = RolesOf(manifest, tensor);
  return std::ranges::all_of(OptimizerRoles,
                             [&](StateRole role) { return !MayKeep(optimizer, role) || roles.contains(role); });
}

/// Returns Parameter::first_update.
static auto FirstUpdateOf(const Manifest& manifest, const Stage& stage, const Plan& plan, const Parameter& parameter)
    -> int64_t {
  if (!parameter.trainable || stage.updates == 0) {
    return 0;
  }
  // A copy of another parameter has been trained in no step.
  const auto block = LoadedBlockOf(parameter);
  const bool is_own = block && block->indices.empty() && block->tensor == parameter.name;
  const auto tensor = is_own ? manifest.tensors.find(parameter.name) : manifest.tensors.end();
  return tensor != manifest.tensors.end() && HasMoments(manifest, tensor->second, plan.run.optimizer)
             ? tensor->second.first_update
             : stage.updates;
}

static auto FirstSampleOf(const Stage& stage, const TokenSource& source) -> int64_t {
  const auto found = stage.samples.find(source.name);
  return found == stage.samples.end() ? 0 : found->second;
}

auto PutStage(const Manifest& manifest, const Stage& stage, Plan& plan) -> void {
  plan.seed.updates = stage.updates;
  plan.seed.steps_before = stage.steps_before;
  plan.run.first_step = stage.first_step;
  for (TokenSource& source : plan.data.sources) {
    source.first_sample = FirstSampleOf(stage, source);
  }
  for (Parameter& parameter : plan.parameters) {
    parameter.first_update = FirstUpdateOf(manifest, stage, plan, parameter);
  }
}

auto StageDifference(const Manifest& manifest, const Stage& stage, const Plan& plan) -> std::string {
  std::string text;
  const auto compare = [&](std::string_view what, int64_t there, int64_t here) {
    if (there != here && text.empty()) {
      text = fmt::format("{} is {} by the checkpoint, {} in the plan", what, there, here);
    }
  };
  compare("the number of updates", stage.updates, plan.seed.updates);
  compare("the number of steps before", stage.steps_before, plan.seed.steps_before);
  compare("the first step of the schedules", stage.first_step, plan.run.first_step);
  for (const TokenSource& source : plan.data.sources) {
    compare(fmt::format("the first sample of source {}", source.name), FirstSampleOf(stage, source),
            source.first_sample);
  }
  for (const Parameter& parameter : plan.parameters) {
    compare(fmt::format("the first update of {}", parameter.name), FirstUpdateOf(manifest, stage, plan, parameter),
            parameter.first_update);
  }
  return text;
}

auto KeptText(const Plan& plan) -> std::string {
  if (!plan.seed.continues()) {
    return {};
  }
  std::string text = "moments begin as 0";
  if (plan.seed.updates > 0) {
    text = fmt::format("moments of {} go on", Counted(plan.seed.updates, "update"));
    const auto fresh = std::ranges::count_if(plan.parameters.begin(), plan.parameters.end(), [&](const Parameter& own) {
      return own.trainable && !TakesMoments(plan, own);
    });
    if (fresh > 0) {
      text += fmt::format(", {} {} with moments of 0", Counted(fresh, "parameter"), fresh == 1 ? "begins" : "begin");
    }
  }
  text += plan.run.first_step > 0 ? fmt::format("; the schedule goes on at step {}", plan.run.first_step)
                                  : "; the schedule begins again";
  const auto taken = std::accumulate(plan.data.sources.begin(), plan.data.sources.end(), int64_t{0},
                                     [](int64_t sum, const TokenSource& source) { return sum + source.first_sample; });
  text += taken > 0 ? fmt::format("; the data go on after {}", Counted(taken, "sample")) : "; the data begin again";
  return text;
}

auto RecordOf(const Plan& plan) -> ManifestSeed {
  return {.run_id = plan.seed.run_id,
          .step = plan.seed.step,
          .digest = plan.seed.manifest,
          .adapter = plan.seed.adapter,
          .updates = plan.seed.updates,
          .first_step = plan.run.first_step,
          .steps_before = plan.seed.steps_before};
}

}  // namespace shardc
