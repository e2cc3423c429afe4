#include "compiler/driver/fit.h"

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

auto FitOfRecipe(const Plan& plan, const RecipeOptions& recipe, const std::string& text, const MemoryBudget& budget)
    -> FitUse {
  FitUse fit{.budget = budget,
             .now = FiguresOf(plan, budget.machine),
             .device = plan.device,
             .sequences = SamplesPerStep(plan)};
  TrialPlanner planner(recipe, text, plan, fit);
  std::vector<Knob> knobs = KnobsOf(plan);
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
  return fit;
}

auto FitOfPlanFile(const Plan& plan, const MemoryBudget& budget) -> FitUse {
  return {.budget = budget, .now = FiguresOf(plan, budget.machine), .device = plan.device, .has_recipe = false};
}

}  // namespace shardc
