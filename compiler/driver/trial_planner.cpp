// Equal blocks add equal FLOPs, bytes and time each, but for the first and the last: figures of two depths lie on a
// line with those of the whole. Units of several blocks, and what is gathered ahead, need depths of several units.
#include "compiler/driver/trial_planner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "compiler/base/text/parse_whole.h"

namespace shardc {

/// Units of the two depths: what the first and the last units do otherwise is over before.
constexpr int64_t FewUnits = 4;
constexpr int64_t MoreUnits = 6;
/// The part of the memory of a rank within which an estimate leaves doubts.
constexpr double DoubtOfMemory = 0.03;
constexpr double MostOffOfMemory = 0.02;
constexpr double MostOffOfTime = 0.03;

/// Returns the first fault, on one line.
static auto WhyRefused(const RecipeSource& source, const Error& error) -> std::string {
  const auto& all = source.diagnostics().all();
  const auto fault =
      std::ranges::find_if(all, [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::Error; });
  const std::string text = fault == all.end() ? error.message : fault->text;
  return text.substr(0, text.find('\n'));
}

static auto NumBlocks(const Plan& plan) -> int64_t {
  int64_t last = -1;
  for (const Parameter& parameter : plan.parameters) {
    last = std::max(last, parameter.layer);
  }
  return last + 1;
}

/// Returns the most blocks that a unit has parameters of.
static auto BlocksOfUnit(const Plan& plan) -> int64_t {
  std::set<std::pair<UnitId, int64_t>> blocks;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    for (const Segment& segment : sub_vector.segments) {
      if (const int64_t block = plan.parameters[segment.parameter].layer; block >= 0) {
        blocks.emplace(sub_vector.unit, block);
      }
    }
  }
  int64_t most = 1;
  int64_t of_unit = 0;
  for (auto at = blocks.begin(); at != blocks.end(); ++at) {
    of_unit = at != blocks.begin() && std::prev(at)->first == at->first ? of_unit + 1 : 1;
    most = std::max(most, of_unit);
  }
  return most;
}

/// Returns the blocks of a unit that these keys name, or 1.
static auto BlocksNamed(const TrialPlanner::Sets& sets) -> int64_t {
  constexpr std::string_view Named = "shard.units=blocks:";
  const auto set = std::ranges::find_if(sets, [&](const std::string& each) { return each.starts_with(Named); });
  return set == sets.end() ? 1 : ParseWhole<int64_t>(std::string_view(*set).substr(Named.size())).value_or(1);
}

static auto SortedSets(TrialPlanner::Sets sets) -> TrialPlanner::Sets {
  std::ranges::sort(sets);
  return sets;
}

TrialPlanner::TrialPlanner(const RecipeOptions& recipe, const std::string& text, const Plan& plan, const FitUse& fit)
    : recipe_(recipe), text_(text), fit_(fit), num_blocks_(NumBlocks(plan)) {
  // The time takes the last pass, which orders the streams.
  last_ = fit.now.time ? std::nullopt : std::optional(PassKind::Allocate);
  Keep({}, {.figures = fit.now, .least = LeastFiguresOf(plan, fit.now), .refused = ""}, true);
}

auto TrialPlanner::PlanWith(const Sets& sets, std::optional<PassKind> stop_after) const -> ErrorOr<Plan> {
  RecipeOptions changed = recipe_;
  changed.sets.insert(changed.sets.end(), sets.begin(), sets.end());
  RecipeSource source(changed, text_, LeftOut::Assume);
  source.set_file_checks(FileChecks::None);
  auto plan = source.LoadAndCompile({.stop_after = stop_after, .verify = false});
  return plan ? std::move(plan) : Error{plan.error().code, WhyRefused(source, plan.error())};
}

auto TrialPlanner::TrialOf(const ErrorOr<Plan>& plan) const -> Trial {
  if (!plan) {
    return {.refused = plan.error().message};
  }
  const PlanFigures figures = FiguresOf(*plan, fit_.budget.machine);
  return {.figures = figures, .least = LeastFiguresOf(*plan, figures), .refused = ""};
}

auto TrialPlanner::FindKnown(const Sets& sets, bool is_whole) -> std::optional<Trial> {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(SortedSets(sets));
  return known != known_.end() && (known->second.is_whole || !is_whole) ? std::optional(known->second.trial)
                                                                        : std::nullopt;
}

auto TrialPlanner::IsWhole(const Sets& sets) -> bool { return FindKnown(sets, true).has_value(); }

auto TrialPlanner::Keep(const Sets& sets, Trial trial, bool is_whole) -> Trial {
  const std::lock_guard lock(mutex_);
  known_[SortedSets(sets)] = {.trial = trial, .is_whole = is_whole};
  return trial;
}

auto TrialPlanner::Remember(const Sets& sets, const ErrorOr<Plan>& plan) -> Trial {
  return Keep(sets, TrialOf(plan), true);
}

auto TrialPlanner::Whole(const Sets& sets) -> Trial {
  const auto known = FindKnown(sets, true);
  return known ? *known : Remember(sets, PlanWith(sets, last_));
}

auto TrialPlanner::IsLineRight() const -> bool {
  const PlanFigures& now = fit_.now;
  const auto is_near = [](double line, double whole, double most) { return std::abs(line - whole) <= most * whole; };
  const auto as_it_is = FromFewBlocks({});
  return as_it_is && as_it_is->figures.flops.all() == now.flops.all() && as_it_is->figures.wire == now.wire &&
         is_near(static_cast<double>(as_it_is->figures.reserved.value), static_cast<double>(now.reserved.value),
                 MostOffOfMemory) &&
         (!now.time || is_near(as_it_is->figures.time->step().value, now.time->step().value, MostOffOfTime));
}

auto TrialPlanner::Estimate(const Sets& sets) -> Trial {
  if (const auto known = FindKnown(sets, false)) {
    return *known;
  }
  std::call_once(line_is_judged_, [&] { is_line_right_ = IsLineRight(); });
  const auto line = is_line_right_ ? FromFewBlocks(sets) : std::nullopt;
  return line && !IsInDoubt(*line) ? Keep(sets, *line, false) : Whole(sets);
}

auto TrialPlanner::IsInDoubt(const Trial& trial) const -> bool {
  const auto is_near = [&](const PlanFigures& figures) {
    return std::abs(static_cast<double>(fit_.left(figures).value)) <
           DoubtOfMemory * static_cast<double>(fit_.budget.bytes.value);
  };
  return is_near(trial.figures) || is_near(trial.least);
}

/// Returns nothing where whole plans cost no more, or plans of few blocks are refused.
auto TrialPlanner::FromFewBlocks(const Sets& sets) const -> std::optional<Trial> {
  const auto with_blocks = [&](int64_t num_blocks) {
    Sets changed = sets;
    changed.push_back(fmt::format("model.layers={}", num_blocks));
    return PlanWith(changed, last_);
  };
  int64_t of_unit = BlocksNamed(sets);
  while ((FewUnits + MoreUnits) * of_unit < num_blocks_) {
    const int64_t rest = num_blocks_ % of_unit;
    const int64_t few = FewUnits * of_unit + rest;
    const int64_t more = MoreUnits * of_unit + rest;
    const auto of_more = with_blocks(more);
    if (!of_more) {
      return std::nullopt;
    }
    const int64_t found = BlocksOfUnit(*of_more);
    if (found > of_unit) {
      of_unit = found;
      continue;
    }
    const auto of_few = with_blocks(few);
    if (!of_few) {
      return std::nullopt;
    }
    const Trial begin = TrialOf(of_few);
    const Trial end = TrialOf(of_more);
    const Share beyond{.part = num_blocks_ - more, .of = more - few};
    return Trial{.figures = Beyond(begin.figures, end.figures, beyond),
                 .least = Beyond(begin.least, end.least, beyond),
                 .refused = ""};
  }
  return std::nullopt;
}

}  // namespace shardc
