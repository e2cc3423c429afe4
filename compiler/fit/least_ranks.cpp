// Numbers of ranks along dp that fill whole hosts, or a divisor of one: those that share the batch of a step in turn,
// since they are few; then those with more sequences by halves, since more ranks take less memory each.

#include <algorithm>

#include "compiler/fit/fit_search.h"
#include "compiler/plan/header.h"

namespace shardc {

/// Returns the meshes with other ranks along dp that fill whole hosts, or a divisor of one, fewest ranks first.
static auto MeshesOf(const MemoryBudget& budget, const Mesh& now) -> std::vector<Mesh> {
  const int64_t of_host = RanksOfHost(budget, now);
  const int64_t others = now.num_ranks() / now.size(Axis::Dp);
  std::vector<Mesh> meshes;
  for (int64_t dp = 1; dp * others <= MostRanksTried; ++dp) {
    Mesh mesh = now;
    mesh.set_size(Axis::Dp, dp);
    mesh.hosts = std::max<int64_t>(1, dp * others / of_host);
    const bool is_whole = dp * others > of_host ? dp * others % of_host == 0 : of_host % (dp * others) == 0;
    if (is_whole && dp % now.size(Axis::DpInner) == 0 && mesh.HostsAreBoxes()) {
      meshes.push_back(mesh);
    }
  }
  return meshes;
}

/// Returns the first cut that fits of the sequences of each of these ranks along dp into microbatches. Those of the
/// recipe's size come first, then smaller ones, then larger ones.
static auto CutThatFits(const FitUse& fit, const Plan& plan, const Mesh& mesh, int64_t sequences,
                        const TrialOptions& options) -> std::optional<LeastRanks> {
  const int64_t of_step = mesh.size(Axis::Replicate) * mesh.size(Axis::Dp) * sequences;
  const bool has_global = KeysOf(plan).batch.global.has_value();
  const auto sets_of = [&](int64_t micro) {
    std::vector<std::string> sets;
    const auto set = [&](std::string_view key, int64_t value, int64_t now) {
      if (value != now) {
        sets.push_back(fmt::format("{}={}", key, value));
      }
    };
    set("mesh.dp", mesh.size(Axis::Dp), plan.mesh.size(Axis::Dp));
    set("mesh.hosts", mesh.hosts, plan.mesh.hosts);
    set("batch.micro", micro, plan.run.micro_batch);
    set("batch.accumulate", sequences / micro, plan.run.accumulate);
    if (has_global) {
      set("batch.global", of_step, SamplesPerStep(plan));
    }
    return sets;
  };
  const auto may_fit = [&](int64_t micro) {
    const Trial trial = options.plan(sets_of(micro));
    return !trial.refused.empty() || fit.fits(trial.least);
  };
  // Smaller microbatches take less, except that a single one needs no sums over microbatches.
  if (!may_fit(1) && !may_fit(sequences)) {
    return std::nullopt;
  }
  std::vector<int64_t> cuts;
  for (int64_t micro = 1; micro <= sequences; ++micro) {
    if (sequences % micro == 0) {
      cuts.insert(micro <= plan.run.micro_batch ? cuts.begin() : cuts.end(), micro);
    }
  }
  for (const int64_t micro : cuts) {
    const Trial trial = options.plan(sets_of(micro));
    if (trial.refused.empty() && fit.fits(trial.figures)) {
      return LeastRanks{.ranks = mesh.num_ranks(),
                        .hosts = mesh.hosts,
                        .sequences = of_step,
                        .row = {.knob = {.sets = sets_of(micro)}, .figures = trial.figures}};
    }
  }
  return std::nullopt;
}

auto LeastRanksThatFit(const FitUse& fit, const Plan& plan, const TrialOptions& options) -> std::optional<LeastRanks> {
  std::vector<Mesh> meshes = MeshesOf(fit.budget, plan.mesh);
  const int64_t of_rank = plan.run.micro_batch * plan.run.accumulate;
  const int64_t sequences = plan.mesh.size(Axis::Dp) * of_rank;
  for (const Mesh& mesh : meshes) {
    if (sequences % mesh.size(Axis::Dp) == 0) {
      if (auto row = CutThatFits(fit, plan, mesh, sequences / mesh.size(Axis::Dp), options)) {
        return row;
      }
    }
  }
  std::erase_if(meshes, [&](const Mesh& mesh) { return mesh.size(Axis::Dp) <= plan.mesh.size(Axis::Dp); });
  std::optional<LeastRanks> found;
  size_t too_few = 0;
  size_t enough = 0;
  while (!found && enough < meshes.size()) {
    too_few = enough;
    enough = std::min(std::max<size_t>(1, enough * 2), meshes.size());
    found = CutThatFits(fit, plan, meshes[enough - 1], of_rank, options);
  }
  while (found && enough - too_few > 1) {
    const size_t middle = too_few + (enough - too_few) / 2;
    if (auto row = CutThatFits(fit, plan, meshes[middle - 1], of_rank, options)) {
      found = std::move(row);
      enough = middle;
    } else {
      too_few = middle;
    }
  }
  return found;
}

}  // namespace shardc
