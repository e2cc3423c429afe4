#include "compiler/driver/fit.h"

#include <numeric>

#include "compiler/base/stopwatch.h"
#include "compiler/data/scan_bar.h"
#include "compiler/driver/trial_planner.h"
#include "compiler/fit/fit_search.h"
#include "compiler/fit/in_parallel.h"
#include "compiler/plan/text.h"

namespace shardc {

/// Plans the recipe with a change. `plan` is that of the recipe as it is.
static auto RowOf(Knob knob, const Plan& plan, const FitUse& fit, TrialPlanner& planner) -> KnobRow {
  if (!knob.refused.empty()) {
    return {.knob = std::move(knob)};
  }
  const auto other = planner.PlanWith(knob.sets);
  const Trial trial = planner.Remember(knob.sets, other);
  // Only plans whose figures agree can be one plan.
  const bool is_same = other && trial.figures == fit.now && PlanHash(*other) == PlanHash(plan);
  knob.refused = is_same ? "it makes the same plan" : trial.refused;
  KnobRow row{.knob = std::move(knob)};
  if (row.knob.refused.empty()) {
    row.figures = trial.figures;
  }
  return row;
}

/// Returns what takes most at the peak of the recipe with microbatches of one sequence, beside the state, of which each
/// rank along dp has a slice.
static auto MostThatStaysOf(const TrialPlanner& planner, const Plan& plan) -> std::optional<MostThatStays> {
  MeshLayout layout = LayoutNow(plan);
  layout.accumulate *= layout.micro;
  layout.micro = 1;
  const auto cut = planner.PlanWith(layout.SetsFrom(LayoutNow(plan)), PassKind::Allocate);
  if (!cut) {
    return std::nullopt;
  }
  const MemoryUse at_peak =
      std::ranges::max(MemoryOverOps(*cut, SectionKind::Step), {}, [](const MemoryUse& use) { return use.total(); });
  MostThatStays most;
  for (int i = 0; i < NumCategories; ++i) {
    const auto category = static_cast<Category>(i);
    const Bytes bytes = at_peak.of(category);
    if (category != Category::Parameters && category != Category::Moments && bytes > most.bytes) {
      most = {.category = category, .bytes = bytes};
    }
  }
  return most;
}

/// Returns rows of microbatches twice as large each, up to the first that does not fit. They join microbatches of a
/// rank as long as it has several; then the batch of a step grows.
static auto GrownRows(const Plan& plan, const FitUse& fit, TrialPlanner& planner) -> std::vector<GrownRow> {
  const MeshLayout now = LayoutNow(plan);
  std::vector<GrownRow> rows;
  for (int64_t factor = 2; factor <= 1024; factor *= 2) {
    const int64_t joined = std::gcd(now.accumulate, factor);
    MeshLayout layout = now;
    layout.micro *= factor;
    layout.accumulate /= joined;
    layout.global *= factor / joined;
    rows.push_back({.tokens = plan.run.tokens_per_step * (factor / joined),
                    .row = RowOf({.sets = layout.SetsFrom(now)}, plan, fit, planner)});
    if (!rows.back().row.figures || !fit.fits(*rows.back().row.figures)) {
      break;
    }
  }
  return rows;
}

auto FitOfRecipe(const Plan& plan, const RecipeOptions& recipe, const std::string& text, const MemoryBudget& budget,
                 bool grows_batch) -> FitUse {
  FitUse fit{.budget = budget,
             .now = FiguresOf(plan, budget.machine),
             .device = plan.device,
             .sequences = SamplesPerStep(plan),
             .ranks = plan.mesh.num_ranks(),
             .steps = plan.run.steps};
  TrialPlanner planner(recipe, text, plan, fit);
  fit.grown = grows_batch ? GrownRows(plan, fit, planner) : std::vector<GrownRow>();
  std::vector<Knob> knobs = KnobsOf(plan, RanksOfHost(budget, plan.mesh));
  fit.knobs.resize(knobs.size());
  InParallel(knobs.size(), [&](size_t i) { fit.knobs[i] = RowOf(std::move(knobs[i]), plan, fit, planner); });
  const Stopwatch watch;
  ScanBar bar(stderr);
  const TrialOptions trials{.plan = [&](const std::vector<std::string>& sets) { return planner.Estimate(sets); },
                            .tell =
                                [&](size_t planned) {
                                  if (watch.Elapsed() > Seconds{1}) {
                                    bar.Show(fmt::format("planning combinations of keys, {} so far", planned));
                                  }
                                }};
  const AllOffers offers = OffersOf(plan);
  const auto fastest_from = [&](const std::optional<Combination>& cheapest) {
    const auto found = planner.Answer([&] { return FastestThatFits(cheapest, fit, offers, trials); });
    return found ? std::optional(found->row) : std::nullopt;
  };
  fit.fastest = fit.now.time ? fastest_from({}) : std::nullopt;
  // If any combination fits, this search finds one.
  if (const auto cheapest =
          fit.fastest ? std::nullopt : planner.Answer([&] { return CheapestThatFits(fit, offers, trials); })) {
    fit.cheapest = cheapest->row;
    fit.fastest = fit.now.time ? fastest_from(cheapest->combination) : std::nullopt;
  }
  fit.least_ranks = planner.Answer([&] { return LeastRanksThatFit(fit, plan, trials); });
  if (!fit.least_ranks) {
    fit.stays = MostThatStaysOf(planner, plan);
  }
  if (!fit.fits_with_keys()) {
    auto with_keys = planner.Answer([&] { return LeastRanksWithKeys(fit, plan, trials); });
    const bool takes_fewer = with_keys && (!fit.least_ranks || with_keys->ranks < fit.least_ranks->ranks);
    fit.least_with_keys = takes_fewer ? std::move(with_keys) : std::nullopt;
  }
  return fit;
}

auto FitOfPlanFile(const Plan& plan, const MemoryBudget& budget) -> FitUse {
  return {.budget = budget,
          .now = FiguresOf(plan, budget.machine),
          .device = plan.device,
          .steps = plan.run.steps,
          .has_recipe = false};
}

}  // namespace shardc
