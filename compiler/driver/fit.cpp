#include "compiler/driver/fit.h"

#include <algorithm>

#include "compiler/base/stopwatch.h"
#include "compiler/data/scan_bar.h"
#include "compiler/fit/in_parallel.h"
#include "compiler/plan/text.h"

namespace shardc {

/// Returns the first fault, on one line.
static auto WhyRefused(const RecipeSource& source, const Error& error) -> std::string {
  const auto& all = source.diagnostics().all();
  const auto fault =
      std::ranges::find_if(all, [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::Error; });
  const std::string text = fault == all.end() ? error.message : fault->text;
  return text.substr(0, text.find('\n'));
}

namespace {

/// The recipe, to be planned with keys changed. It was accepted, and so were its files.
class ChangedRecipe {
 public:
  ChangedRecipe(const RecipeOptions& recipe, const std::string& text) : recipe_(recipe), text_(text) {}

  /// Plans without the verifier, which takes most of the time of a plan. Errors: why it is refused, on one line.
  auto PlanWith(const std::vector<std::string>& sets, std::optional<PassKind> stop_after = {}) const -> ErrorOr<Plan> {
    RecipeOptions changed = recipe_;
    changed.sets.insert(changed.sets.end(), sets.begin(), sets.end());
    RecipeSource source(changed, text_, LeftOut::Assume);
    source.set_file_checks(FileChecks::None);
    auto plan = source.LoadAndCompile({.stop_after = stop_after, .verify = false});
    return plan ? std::move(plan) : Error{plan.error().code, WhyRefused(source, plan.error())};
  }

 private:
  const RecipeOptions& recipe_;
  const std::string& text_;
};

}  // namespace

/// Plans the recipe with a change. `plan` is that of the recipe as it is, and has the figures `fit.now`.
static auto RowOf(Knob knob, const Plan& plan, const FitUse& fit, const ChangedRecipe& recipe) -> KnobRow {
  if (!knob.refused.empty()) {
    return {.knob = std::move(knob)};
  }
  const auto other = recipe.PlanWith(knob.sets);
  if (!other) {
    knob.refused = other.error().message;
    return {.knob = std::move(knob)};
  }
  const PlanFigures figures = FiguresOf(*other, fit.budget.machine);
  // Only plans whose figures agree can be one plan.
  if (figures == fit.now && PlanHash(*other) == PlanHash(plan)) {
    knob.refused = "it makes the same plan";
    return {.knob = std::move(knob)};
  }
  return {.knob = std::move(knob), .figures = figures};
}

auto PlanTrial(const RecipeOptions& recipe, const std::string& text, const std::vector<std::string>& sets) -> Trial {
  // Later passes move no byte.
  const auto plan = ChangedRecipe(recipe, text).PlanWith(sets, PassKind::Allocate);
  if (!plan) {
    return {.refused = plan.error().message};
  }
  const PlanFigures figures = FiguresOf(*plan);
  return {.figures = figures, .least = LeastFiguresOf(*plan, figures), .refused = ""};
}

auto FitOfRecipe(const Plan& plan, const RecipeOptions& recipe, const std::string& text, const MemoryBudget& budget)
    -> FitUse {
  FitUse fit{.budget = budget,
             .now = FiguresOf(plan, budget.machine),
             .device = plan.device,
             .sequences = SamplesPerStep(plan)};
  const ChangedRecipe changed(recipe, text);
  std::vector<Knob> knobs = KnobsOf(plan);
  fit.knobs.resize(knobs.size());
  InParallel(knobs.size(), [&](size_t i) { fit.knobs[i] = RowOf(std::move(knobs[i]), plan, fit, changed); });
  const Stopwatch watch;
  ScanBar bar(stderr);
  const auto tell = [&](size_t planned) {
    if (watch.Elapsed() > Seconds{1}) {
      bar.Show(fmt::format("planning combinations of keys, {} so far", planned));
    }
  };
  const TrialOptions trials{.plan = [&](const std::vector<std::string>& sets) { return PlanTrial(recipe, text, sets); },
                            .tell = tell};
  const AllOffers offers = OffersOf(plan);
  const auto cheapest = CheapestThatFits(fit, offers, trials);
  fit.cheapest = cheapest ? std::optional(cheapest->row) : std::nullopt;
  fit.least_ranks = LeastRanksThatFit(fit, plan, trials);
  if (!fit.now.time) {
    return fit;
  }
  // The time of a step takes the last pass, which orders the streams.
  const auto plan_whole = [&](const std::vector<std::string>& sets) {
    const auto whole = changed.PlanWith(sets);
    return whole ? Trial{.figures = FiguresOf(*whole, budget.machine), .least = {}, .refused = ""}
                 : Trial{.refused = whole.error().message};
  };
  if (fit.least_ranks) {
    fit.least_ranks->row.figures->time = plan_whole(fit.least_ranks->row.knob.sets).figures.time;
  }
  if (cheapest) {
    fit.fastest = FastestThatFits(cheapest->combination, fit, offers, {.plan = plan_whole, .tell = tell});
  }
  return fit;
}

auto FitOfPlanFile(const Plan& plan, const MemoryBudget& budget) -> FitUse {
  return {.budget = budget, .now = FiguresOf(plan, budget.machine), .device = plan.device, .has_recipe = false};
}

}  // namespace shardc
