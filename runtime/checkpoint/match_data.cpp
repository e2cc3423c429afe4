#include "runtime/checkpoint/match_data.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/base/mapped.h"
#include "compiler/plan/sample_quotas.h"
#include "runtime/checkpoint/another_run.h"
#include "runtime/checkpoint/differences.h"

namespace shardc {

namespace {

/// Returns the number of a source; nothing if there is none of that name.
auto Find(const std::vector<ManifestSource>& sources, const std::string& name) -> std::optional<size_t> {
  const auto found = std::ranges::find(sources, name, &ManifestSource::name);
  return found == sources.end() ? std::nullopt : std::optional(static_cast<size_t>(found - sources.begin()));
}

/// Returns the names of the sources that both sides have, as one of them orders them.
auto CommonNames(const ManifestData& side, const ManifestData& other) -> std::string {
  std::vector<std::string_view> names;
  for (const ManifestSource& source : side.sources) {
    if (Find(other.sources, source.name)) {
      names.push_back(source.name);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Does the order of a mixture's sources count? That of a run decides which of two is due first; a stage may have
/// another.
enum class SourceOrder : uint8_t { Same, Any };

/// Compares what the sources of two mixtures read that both have. Shares are compared by samples (MatchWeights).
auto CompareSources(Differences& data, const ManifestData& there, const ManifestData& here, SourceOrder order) -> void {
  const auto kind = [](const ManifestData& side) -> std::string {
    return side.sources.empty()
               ? "one stream"
               : fmt::format("{}", fmt::join(Mapped<std::string_view>(side.sources, &ManifestSource::name), ", "));
  };
  constexpr std::string_view Read = "`data.tokens` or `data.source`: what is read";
  if (there.sources.empty() || here.sources.empty() ||
      (order == SourceOrder::Same && CommonNames(there, here) != CommonNames(here, there))) {
    data.Compare(Read, kind(there), kind(here));
    return;
  }
  for (const ManifestSource& source : here.sources) {
    if (const auto s = Find(there.sources, source.name)) {
      data.Compare(fmt::format("`data.source.tokens`: the token stream of {}", source.name),
                   there.sources[*s].fingerprint, source.fingerprint);
    }
  }
}

/// Returns what a mixture's fingerprint has after those of its sources: that of the files of `data.eval`.
auto FingerprintOfEval(const ManifestData& data) -> std::string {
  size_t begin = 0;
  for (const ManifestSource& source : data.sources) {
    begin += source.name.size() + source.fingerprint.size() + std::string_view(begin == 0 ? ": " : "; : ").size();
  }
  return data.fingerprint.substr(std::min(begin, data.fingerprint.size()));
}

/// Compares the digests of token files whose fingerprints agree, and of targets and held-out files too, if `all`. A
/// side may have no digests.
auto CompareDigests(Differences& data, const ManifestData& there, const ManifestData& here, bool all = true) -> void {
  const auto compare = [&](size_t of_there, size_t of_here, const std::string& list) {
    if (of_there < there.digests.size() && of_here < here.digests.size()) {
      data.Compare(fmt::format("the digest of all bytes of the files {}", list), there.digests[of_there],
                   here.digests[of_here]);
    }
  };
  for (size_t s = 0; s < here.sources.size(); ++s) {
    if (const auto of_there = Find(there.sources, here.sources[s].name)) {
      compare(*of_there, s, "of source " + here.sources[s].name);
    }
  }
  // After those of the sources: `data.tokens`, if there is no mixture, targets, `data.eval`.
  const size_t num_lists = all ? there.digests.size() + here.digests.size() : here.sources.empty() ? 1 : 0;
  for (size_t i = 0; i < num_lists; ++i) {
    compare(there.sources.size() + i, here.sources.size() + i,
            here.sources.empty() && i == 0 ? "that `data.tokens` names" : "of targets or of `data.eval`");
  }
}

auto CompareData(const ManifestData& there, const ManifestData& here) -> Differences {
  Differences data;
  if (there.sources.empty() && here.sources.empty()) {
    data.Compare("what the token files hold (`data.tokens`, `data.targets`, `data.eval`, `data.format`)",
                 there.fingerprint, here.fingerprint);
  } else {
    CompareSources(data, there, here, SourceOrder::Same);
    if (data.empty()) {
      data.Compare("what `data.eval` gives", FingerprintOfEval(there), FingerprintOfEval(here));
    }
  }
  if (data.empty()) {
    CompareDigests(data, there, here);
  }
  data.Compare("data.order", ToText(there.order), ToText(here.order));
  data.Compare("data.seed", there.seed, here.seed);
  data.Compare("data.pack", ToText(there.pack), ToText(here.pack));
  data.Compare("data.eval_tokens", there.eval_tokens, here.eval_tokens);
  data.Compare("model.seq", there.seq, here.seq);
  data.Compare("`batch.global`: tokens per step", there.tokens_per_step, here.tokens_per_step);
  return data;
}

/// Checks that the weights give the completed steps the samples that they had. Requires: the sources match.
auto MatchWeights(const Manifest& manifest, const CheckpointReaderOptions& options) -> Status {
  const Plan& plan = *options.plan;
  const ManifestData& there = manifest.data;
  if (!plan.data.is_mixture()) {
    return Success{};
  }
  // Of all sources that one of both has: one that the other lacks has no weight there.
  DataSource now = plan.data;
  for (const ManifestSource& source : there.sources) {
    if (std::ranges::find(plan.data.sources, source.name, &TokenSource::name) == plan.data.sources.end()) {
      now.sources.push_back({.name = source.name, .weight = "0", .files = {}});
    }
  }
  DataSource before = now;
  Differences weights;
  for (size_t s = 0; s < now.sources.size(); ++s) {
    const auto of_there = Find(there.sources, now.sources[s].name);
    before.sources[s].weight = of_there ? there.sources[*of_there].weight : "0";
    weights.Compare(fmt::format("the weight of {}", now.sources[s].name), before.sources[s].weight,
                    now.sources[s].weight);
  }
  if (weights.empty() && there.steps == plan.run.steps) {
    return Success{};
  }
  // A finished run has no steps left to compare.
  const int64_t done = std::min(manifest.step, plan.run.steps);
  ASSIGN_OR_RETURN(const auto other, FirstOtherStep({before, {there.steps, plan.run.first_step}},
                                                    {now, plan.run.schedule_steps()}, SamplesPerStep(plan), done));
  FAIL_IF(other >= 0 && !weights.empty(), ExitCode::Checkpoint,
          "checkpoint of a run over other data: by `data.source.weight`, step {} has other samples than it was "
          "trained on: {}; put it back, or {}",
          other, weights.Text(), GoOnInAnotherRun(manifest, options));
  FAIL_IF(other >= 0, ExitCode::Checkpoint,
          "train.steps is {} in the checkpoint, {} in this run, and with it the weights of the sources give step "
          "{} other samples "
          "than it was trained on; put it back, or {}",
          there.steps, plan.run.steps, other, GoOnInAnotherRun(manifest, options));
  return Success{};
}

auto DescribedData(const CheckpointReaderOptions& options) -> ManifestData {
  return DescribeData(*options.plan, options.data_fingerprint, options.source_fingerprints, options.data_digests);
}

}  // namespace

auto MatchData(const Manifest& manifest, const CheckpointReaderOptions& options) -> Status {
  const Differences data = CompareData(manifest.data, DescribedData(options));
  FAIL_IF(!data.empty(), ExitCode::Checkpoint, "checkpoint of a run over other data: {}; put it back, or {}",
          data.Text(), GoOnInAnotherRun(manifest, options));
  return MatchWeights(manifest, options);
}

auto OtherFiles(const ManifestData& there, const CheckpointReaderOptions& options) -> std::string {
  const ManifestData here = DescribedData(options);
  Differences data;
  if (here.sources.empty()) {
    // Those of targets and held-out files come after the tokens'.
    const std::string& tokens = options.source_fingerprints.front();
    data.Compare("what `data.tokens` holds", there.fingerprint.substr(0, tokens.size()), tokens);
  } else {
    CompareSources(data, there, here, SourceOrder::Any);
  }
  if (data.empty()) {
    CompareDigests(data, there, here, false);
  }
  return data.Text();
}

}  // namespace shardc
