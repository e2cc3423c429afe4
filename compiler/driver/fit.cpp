#include "compiler/driver/fit.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>

#include "compiler/base/stopwatch.h"
#include "compiler/driver/slow_work.h"
#include "compiler/driver/trial_planner.h"
#include "compiler/fit/fit_search.h"
#include "compiler/fit/in_parallel.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

/// The plan of the recipe as it is. Several threads may ask it at once.
class PlanAsItIs {
 public:
  explicit PlanAsItIs(const Plan& plan) : plan_(plan) {}

  /// Returns true if the other plan has the same text, but for origins and paths. A hash takes nearly as long as a
  /// plan, and plans of other ops need none.
  auto IsSameAs(const Plan& other) -> bool {
    for (size_t i = 0; i < plan_.sections.size(); ++i) {
      if (!std::ranges::equal(plan_.sections[i].ops, other.sections[i].ops, {}, &Op::body, &Op::body)) {
        return false;
      }
    }
    std::call_once(is_hashed_, [&] { hash_ = PlanHash(plan_); });
    return PlanHash(other) == hash_;
  }

 private:
  const Plan& plan_;
  std::once_flag is_hashed_;
  std::string hash_;
};

}  // namespace

/// Plans the recipe with a change.
static auto RowOf(Knob knob, PlanAsItIs& plan, const FitUse& fit, TrialPlanner& planner) -> KnobRow {
  if (!knob.refused.empty()) {
    return {.knob = std::move(knob)};
  }
  const auto other = planner.PlanWith(knob.sets);
  const Trial trial = planner.Remember(knob.sets, other);
  const bool is_same = other && trial.figures == fit.now && plan.IsSameAs(*other);
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
  PlanAsItIs as_it_is(plan);
  std::vector<GrownRow> rows;
  for (int64_t factor = 2; factor <= 1024; factor *= 2) {
    const int64_t joined = std::gcd(now.accumulate, factor);
    MeshLayout layout = now;
    layout.micro *= factor;
    layout.accumulate /= joined;
    layout.global *= factor / joined;
    rows.push_back({.tokens = plan.run.tokens_per_step * (factor / joined),
                    .row = RowOf({.sets = layout.SetsFrom(now)}, as_it_is, fit, planner)});
    if (!rows.back().row.figures || !fit.fits(*rows.back().row.figures)) {
      break;
    }
  }
  return rows;
}

namespace {

/// Answers as they become known, and what the command is at meanwhile. Several threads may call it at once.
class Answers {
 public:
  Answers(const FitUse& fit, const FitListener& listener) : fit_(fit), listener_(listener) {}

  auto Know(FitPart part, size_t row = 0) -> void {
    if (listener_) {
      progress_.Clear();
      listener_(fit_, part, row);
    }
  }
  /// Takes the number of a row that was planned. Rows are planned in any order, and reported in theirs.
  auto KnowRow(size_t row) -> void {
    const std::lock_guard lock(mutex_);
    planned_.insert(row);
    for (; planned_.contains(known_rows_); ++known_rows_) {
      Know(FitPart::Row, known_rows_);
    }
    Tell(fmt::format("planned {} of {} changes of keys", planned_.size(), fit_.knobs.size()));
  }
  auto Tell(const std::string& words) -> void { progress_.Tell(watch_.Elapsed(), words); }

 private:
  const FitUse& fit_;
  const FitListener& listener_;
  const Stopwatch watch_;
  SlowWork progress_{stderr};
  std::mutex mutex_;
  std::set<size_t> planned_;
  size_t known_rows_ = 0;
};

}  // namespace

static auto FitNow(const Plan& plan, const FitQuestion& question) -> FitUse {
  return {.budget = question.budget,
          .now = FiguresOf(plan, question.budget.machine),
          .device = plan.device,
          .sequences = SamplesPerStep(plan),
          .ranks = plan.mesh.num_ranks(),
          .steps = plan.run.steps,
          .price = question.price,
          .device_of_machine = question.device_of_machine};
}

auto FitOfRecipe(const Plan& plan, const RecipeOptions& recipe, const std::string& text, const FitQuestion& question,
                 const FitListener& known) -> FitUse {
  FitUse fit = FitNow(plan, question);
  Answers answers(fit, known);
  answers.Know(FitPart::Now);
  TrialPlanner planner(recipe, text, plan, fit);
  const int64_t of_host = RanksOfHost(fit.budget, plan.mesh);
  std::vector<Knob> knobs = KnobsOf(plan, of_host);
  fit.knobs.resize(knobs.size());
  PlanAsItIs as_it_is(plan);
  InParallel(knobs.size(), [&](size_t i) {
    fit.knobs[i] = RowOf(std::move(knobs[i]), as_it_is, fit, planner);
    answers.KnowRow(i);
  });
  answers.Know(FitPart::Refused);
  const TrialOptions trials{
      .plan = [&](const std::vector<std::string>& sets) { return planner.Estimate(sets); },
      .tell = [&](size_t) { answers.Tell(fmt::format("planned {} combinations of keys", planner.num_planned())); }};
  const AllOffers of_fastest = OffersOfFastest(plan, of_host);
  const auto fastest_from = [&](const std::optional<Combination>& cheapest, const AllOffers& offers) {
    const auto found = planner.Answer([&] { return FastestThatFits(cheapest, fit, offers, trials); });
    return found ? std::optional(found->row) : std::nullopt;
  };
  fit.fastest = fit.now.time ? fastest_from({}, of_fastest) : std::nullopt;
  // On the recipe's own mesh a smaller gain is one.
  if (fit.fastest && !fit.is_better(*fit.fastest->figures) && fit.fastest->figures->time->mesh != plan.mesh) {
    fit.fastest = fastest_from({}, OnMeshOfRecipe(of_fastest));
  }
  const AllOffers offers = OffersOf(plan, LayoutNow(plan), of_host);
  // If any combination fits, this search finds one.
  if (const auto cheapest =
          fit.fastest ? std::nullopt : planner.Answer([&] { return CheapestThatFits(fit, offers, trials); })) {
    fit.cheapest = cheapest->row;
    fit.fastest = fit.now.time ? fastest_from(cheapest->combination, of_fastest) : std::nullopt;
  }
  answers.Know(FitPart::Keys);
  fit.least_ranks = planner.Answer([&] { return LeastRanksThatFit(fit, plan, trials); });
  if (!fit.least_ranks) {
    fit.stays = MostThatStaysOf(planner, plan);
  }
  if (!fit.fits_with_keys()) {
    auto with_keys = planner.Answer([&] { return LeastRanksWithKeys(fit, plan, trials); });
    const bool takes_fewer = with_keys && (!fit.least_ranks || with_keys->ranks < fit.least_ranks->ranks);
    fit.least_with_keys = takes_fewer ? std::move(with_keys) : std::nullopt;
  }
  answers.Know(FitPart::Ranks);
  fit.grown = question.grows_batch ? GrownRows(plan, fit, planner) : std::vector<GrownRow>();
  answers.Know(FitPart::Grown);
  return fit;
}

auto FitOfPlanFile(const Plan& plan, const FitQuestion& question, const FitListener& known) -> FitUse {
  FitUse fit = FitNow(plan, question);
  fit.has_recipe = false;
  if (known) {
    known(fit, FitPart::Now, 0);
  }
  return fit;
}

}  // namespace shardc
