// Numbers of ranks along dp that fill whole hosts, or a divisor of one: those that share the batch of a step in turn,
// since they are few; then those with more sequences by halves, since more ranks take less memory each. With other keys
// too, a number of ranks fits if a combination that takes least memory does, or the search for the cheapest finds one.

#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler/fit/fit_search.h"
#include "compiler/plan/header.h"

namespace shardc {

/// Returns the mesh as it is, and those with other ranks along dp that fill whole hosts, or a divisor of one, fewest
/// ranks first.
static auto MeshesOf(const MemoryBudget& budget, const Mesh& now) -> std::vector<Mesh> {
  const int64_t of_host = RanksOfHost(budget, now);
  const int64_t others = now.num_ranks() / now.size(Axis::Dp);
  std::vector<Mesh> meshes;
  for (int64_t dp = 1; dp * others <= MostRanksTried; ++dp) {
    Mesh mesh = now;
    mesh.set_size(Axis::Dp, dp);
    mesh.hosts = std::max<int64_t>(1, dp * others / of_host);
    const bool is_whole = dp * others > of_host ? dp * others % of_host == 0 : of_host % (dp * others) == 0;
    if (dp == now.size(Axis::Dp) && !is_whole) {
      // The recipe's own ranks count as they are: no answer has more if they fit.
      meshes.push_back(now);
    } else if (is_whole && dp % now.size(Axis::DpInner) == 0 && mesh.HostsAreBoxes()) {
      meshes.push_back(mesh);
    }
  }
  return meshes;
}

using FitsOn = std::function<std::optional<LeastRanks>(const Mesh& mesh)>;

/// Returns what `fits_on` finds on the first of these meshes that fits, if all after it do too.
static auto FirstThatFits(const std::vector<Mesh>& meshes, const FitsOn& fits_on) -> std::optional<LeastRanks> {
  std::optional<LeastRanks> found;
  size_t too_few = 0;
  size_t enough = 0;
  while (!found && enough < meshes.size()) {
    too_few = enough;
    enough = std::min(std::max<size_t>(1, enough * 2), meshes.size());
    found = fits_on(meshes[enough - 1]);
  }
  while (found && enough - too_few > 1) {
    const size_t middle = too_few + (enough - too_few) / 2;
    if (auto row = fits_on(meshes[middle - 1])) {
      found = std::move(row);
      enough = middle;
    } else {
      too_few = middle;
    }
  }
  return found;
}

/// Returns the layout on a mesh whose ranks along dp have so many sequences of a step each.
static auto LayoutOn(const Plan& plan, const Mesh& mesh, int64_t sequences) -> MeshLayout {
  MeshLayout layout = LayoutNow(plan);
  layout.dp = mesh.size(Axis::Dp);
  layout.tp = mesh.size(Axis::Tp);
  layout.hosts = mesh.hosts;
  layout.micro = std::gcd(layout.micro, sequences);
  layout.accumulate = sequences / layout.micro;
  layout.global = layout.global == 0 ? 0 : mesh.size(Axis::Replicate) * layout.dp * sequences;
  return layout;
}

static auto FoundOn(const Mesh& mesh, int64_t sequences, KnobRow row) -> LeastRanks {
  return {.ranks = mesh.num_ranks(),
          .hosts = mesh.hosts,
          .sequences = mesh.size(Axis::Replicate) * mesh.size(Axis::Dp) * sequences,
          .row = std::move(row)};
}

/// Returns the first cut that fits of the sequences of each of these ranks along dp into microbatches. Those of the
/// recipe's size come first, then smaller ones, then larger ones.
static auto CutThatFits(const FitUse& fit, const Plan& plan, const Mesh& mesh, int64_t sequences,
                        const TrialOptions& options) -> std::optional<LeastRanks> {
  const auto sets_of = [&](int64_t micro) {
    MeshLayout layout = LayoutOn(plan, mesh, sequences);
    layout.micro = micro;
    layout.accumulate = sequences / micro;
    return layout.SetsFrom(LayoutNow(plan));
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
      return FoundOn(mesh, sequences, {.knob = {.sets = sets_of(micro)}, .figures = trial.figures});
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
  return FirstThatFits(meshes, [&](const Mesh& mesh) { return CutThatFits(fit, plan, mesh, of_rank, options); });
}

/// Returns the combinations that take least memory, of each number of ranks along tp: the smallest microbatches, or a
/// single one, which needs no sums; the policy that keeps the least; of each other subject the first offer that lowers
/// memory.
static auto LeastOfEachTp(const AllOffers& offers) -> Combinations {
  Combinations all;
  const std::vector<Offer>& layouts = offers[static_cast<size_t>(Subject::Layout)].offers;
  for (size_t layout = 0; layout < layouts.size(); ++layout) {
    const bool is_last = layout + 1 == layouts.size() || layouts[layout + 1].tp != layouts[layout].tp;
    if (is_last || layouts[layout].accumulate == 1) {
      Combination& one = all.emplace_back(AsItIs(offers));
      one[static_cast<size_t>(Subject::Layout)] = layout;
      for (size_t i = static_cast<size_t>(Subject::Policy); i < NumSubjects; ++i) {
        const bool applies = Applies(static_cast<Subject>(i), layouts[layout]);
        one[i] = applies ? offers[i].least.front() : offers[i].as_is;
      }
    }
  }
  return all;
}

/// Returns a combination of keys that fits. If one that takes least memory fits, its keys go back to those of the
/// recipe where they may, the policy first; else it is the cheapest one. Nothing if none fits.
static auto SomeThatFits(const FitUse& fit, const AllOffers& offers, const TrialOptions& options)
    -> std::optional<KnobRow> {
  Trials trials(fit, offers, options);
  const Combinations least = LeastOfEachTp(offers);
  trials.Plan(least);
  const auto first = std::ranges::find_if(least, [&](const Combination& one) { return trials.Fits(one); });
  if (first == least.end()) {
    // The others that lower memory take more than half as much.
    const bool may_fit = std::ranges::any_of(least, [&](const Combination& one) {
      PlanFigures half = trials.of(one).least;
      half.reserved = half.reserved / 2;
      return trials.of(one).refused.empty() && fit.fits(half);
    });
    auto cheapest = may_fit ? CheapestThatFits(fit, offers, options) : std::nullopt;
    return cheapest ? std::optional(std::move(cheapest->row)) : std::nullopt;
  }
  Combination found = *first;
  const auto fits_with = [&](size_t subject, size_t offer) {
    Combination next = found;
    next[subject] = offer;
    trials.Plan({next});
    found = trials.Fits(next) ? next : found;
    return found == next;
  };
  for (size_t i = static_cast<size_t>(Subject::Policy); i < NumSubjects; ++i) {
    if (!fits_with(i, offers[i].as_is) && static_cast<Subject>(i) == Subject::Policy) {
      for (size_t offer = offers[i].offers.size(); --offer > found[i] && !fits_with(i, offer);) {
      }
    }
  }
  const size_t as_is = offers[static_cast<size_t>(Subject::Layout)].as_is;
  if (offers[0].offers[as_is].tp == LayoutOf(offers, found).tp) {
    fits_with(static_cast<size_t>(Subject::Layout), as_is);
  }
  return trials.RowOf(found);
}

auto LeastRanksWithKeys(const FitUse& fit, const Plan& plan, const TrialOptions& options) -> std::optional<LeastRanks> {
  std::vector<Mesh> meshes = MeshesOf(fit.budget, plan.mesh);
  std::erase_if(meshes,
                [&](const Mesh& mesh) { return mesh.num_ranks() < plan.mesh.num_ranks() || mesh == plan.mesh; });
  const int64_t of_rank = plan.run.micro_batch * plan.run.accumulate;
  const int64_t all = plan.mesh.size(Axis::Dp) * of_rank;
  const int64_t of_host = RanksOfHost(fit.budget, plan.mesh);
  const auto fits_on = [&](const Mesh& mesh, int64_t sequences) -> std::optional<LeastRanks> {
    auto found = SomeThatFits(fit, OffersOf(plan, LayoutOn(plan, mesh, sequences), of_host), options);
    return found ? std::optional(FoundOn(mesh, sequences, *std::move(found))) : std::nullopt;
  };
  return FirstThatFits(meshes, [&](const Mesh& mesh) -> std::optional<LeastRanks> {
    // The batch stays if so many ranks move from dp to tp that the others share its sequences.
    Mesh moved = mesh;
    while (all % moved.size(Axis::Dp) != 0 && moved.size(Axis::Dp) % 2 == 0 && moved.size(Axis::Tp) * 2 <= of_host) {
      moved.set_size(Axis::Dp, moved.size(Axis::Dp) / 2);
      moved.set_size(Axis::Tp, moved.size(Axis::Tp) * 2);
    }
    if (all % moved.size(Axis::Dp) == 0) {
      if (auto found = fits_on(moved, all / moved.size(Axis::Dp))) {
        return found;
      }
    }
    return moved == mesh ? std::nullopt : fits_on(mesh, of_rank);
  });
}

}  // namespace shardc
