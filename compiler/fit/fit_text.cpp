// The answers of --fit for people, part by part: each part is text as soon as what it says is known.
#include "compiler/fit/fit_text.h"

#include <cmath>

#include "compiler/base/devices.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/text/table.h"

namespace shardc {

static auto TakenText(const FitUse& fit) -> std::string {
  const Bytes communicators = fit.now.communicators;
  return fmt::format("each rank takes {} in arenas and {} outside them{}", FormatMemory(fit.now.reserved),
                     FormatMemory(fit.outside(fit.now)),
                     communicators == Bytes{}
                         ? ""
                         : fmt::format(" ({} for communicators between hosts)", FormatMemory(communicators)));
}

static auto BudgetText(const MemoryBudget& budget) -> std::string {
  return FormatMemory(budget.bytes) +
         (budget.machine == nullptr ? " that `--fit` allows" : fmt::format(" of {}", budget.machine->name));
}

/// Returns a line of the table. Its columns are as wide as the figures may be: a row is printed before the next is
/// known.
static auto TableLine(const FitUse& fit, std::vector<std::string> cells, std::string step) -> std::string {
  std::vector<size_t> widths{8, 9, 4, 10, 11};
  if (fit.now.time) {
    cells.insert(cells.begin() + 3, std::move(step));
    widths.insert(widths.begin() + 3, 7);
  }
  Table table("  ", widths);
  table.Row(std::move(cells));
  return table.Text();
}

static auto RowText(const FitUse& fit, const PlanFigures& figures, std::string change, std::string sets)
    -> std::string {
  return TableLine(fit,
                   {FormatMemory(figures.reserved), std::move(change), fit.fits(figures) ? "yes" : "no",
                    FormatFlops(figures.flops.all()), FormatMemory(figures.wire), std::move(sets)},
                   figures.time ? FormatTime(figures.time->step()) : "");
}

/// Returns "+13.0 %".
static auto SignedShare(double now, double before) -> std::string {
  return before == 0 ? "as before" : fmt::format("{:+.1f} %", (now / before - 1) * 100);
}

/// Returns "0.222", "43.4", "32,531".
static auto HoursNumber(double hours) -> std::string {
  return hours >= 99.95 ? Grouped(std::llround(hours))
                        : fmt::format("{:.{}f}", hours,
                                      hours >= 9.995    ? 1
                                      : hours >= 0.9995 ? 2
                                                        : 3);
}

auto HoursText(Seconds time) -> std::string {
  return time.value < 360 ? FormatTime(time) : HoursNumber(time.value / 3600) + " hours";
}

static auto GpuHours(const FitUse& fit, const StepTime& time) -> double {
  return time.run(fit.steps).value * static_cast<double>(time.ranks) / 3600;
}

/// Returns ", $7.12"; empty without a price.
static auto DollarsText(const FitUse& fit, const StepTime& time) -> std::string {
  return fit.price ? fmt::format(", ${:.2f}", GpuHours(fit, time) * *fit.price) : "";
}

/// Returns ", a step in 789 ms, the run in 0.219 hours"; empty where no time is estimated.
static auto StepText(const FitUse& fit, const PlanFigures& figures) -> std::string {
  return figures.time ? fmt::format(", a step in {}, the run in {}{}", FormatTime(figures.time->step()),
                                    HoursText(figures.time->run(fit.steps)), DollarsText(fit, *figures.time))
                      : "";
}

/// Returns the line on the run as the recipe has it.
static auto RunText(const FitUse& fit) -> std::string {
  const StepTime& time = *fit.now.time;
  return Wrapped(fmt::format("the run: {}{} in {} on {}, {} GPU-hours{}, without saves, whose bandwidth is unknown",
                             Counted(fit.steps, "step"),
                             time.num_evaluations == 0 ? "" : " and " + Counted(time.num_evaluations, "evaluation"),
                             HoursText(time.run(fit.steps)), Counted(time.ranks, "GPU"),
                             HoursNumber(GpuHours(fit, time)), DollarsText(fit, time)),
                 2);
}

static auto OptionsText(const Knob& knob) -> std::string {
  std::string text;
  for (const std::string& set : knob.sets) {
    text += " --set " + ShellWord(set);
  }
  return text;
}

/// Returns lines on a combination of keys: `what` it is, what it sets, and its figures.
static auto CombinationText(const FitUse& fit, std::string_view what, const KnobRow& row) -> std::string {
  if (row.knob.sets.empty()) {
    return fmt::format("{}\n  the recipe as it is{}\n", what, StepText(fit, *row.figures));
  }
  const PlanFigures& figures = *row.figures;
  const auto share = [](int64_t now, int64_t before) {
    return SignedShare(static_cast<double>(now), static_cast<double>(before));
  };
  return fmt::format("{}\n", what) + Wrapped(" " + OptionsText(row.knob), 4) +
         Wrapped(fmt::format("  {}{}, FLOPs {}, on the wire {}; batch, ranks, types and determinism stay",
                             FormatMemory(figures.reserved), StepText(fit, figures),
                             share(figures.flops.all().value, fit.now.flops.all().value),
                             share(figures.wire.value, fit.now.wire.value)),
                 4);
}

/// Returns the line on the row of another number type that saves most of the time of the fastest combination; empty if
/// none saves more than an estimate's error.
static auto OtherTypeText(const FitUse& fit, const StepTime& fastest) -> std::string {
  const KnobRow* found = nullptr;
  for (const KnobRow& row : fit.knobs) {
    if (row.figures && row.figures->time && fit.fits(*row.figures) && row.knob.sets[0].starts_with("precision.")) {
      const double step = row.figures->time->step().value;
      const double least = found == nullptr ? fastest.step().value * (1 - ErrorOfGain(fastest, *row.figures->time))
                                            : found->figures->time->step().value;
      found = step < least ? &row : found;
    }
  }
  return found == nullptr ? ""
                          : fmt::format("with {} alone a step takes {}, see the table\n", SetsText(found->knob),
                                        FormatTime(found->figures->time->step()));
}

auto CheapestText(const FitUse& fit) -> std::string {
  if (!fit.fits_with_keys()) {
    return fmt::format("no combination of keys fits on {}; batch, types and determinism stay\n",
                       Counted(fit.ranks, "rank"));
  }
  if (!fit.fastest) {
    return CombinationText(
        fit, "the cheapest combination of keys that fits (FLOPs first, then bytes on the wire):", *fit.cheapest);
  }
  constexpr std::string_view Found = "the fastest combination of keys that was found, number types unchanged";
  if (!fit.is_better(*fit.fastest->figures)) {
    const std::string on_another =
        fit.ranks == 1 ? "" : fmt::format(", or of {:g} % on another mesh", ErrorBetweenRanks * 100);
    return Wrapped(fmt::format("{}: the recipe as it is{}; nothing gains more than the estimate's error of {:g} %{}",
                               Found, StepText(fit, fit.now), ErrorOfRank * 100, on_another),
                   2) +
           OtherTypeText(fit, *fit.now.time);
  }
  return CombinationText(fit, fmt::format("{}, by the estimate:", Found), *fit.fastest) +
         OtherTypeText(fit, *fit.fastest->figures->time);
}

/// Returns lines on a number of ranks, found with `keys` as they are or changed.
static auto RanksText(const FitUse& fit, const LeastRanks& least, std::string_view keys) -> std::string {
  const std::string batch =
      least.sequences == fit.sequences
          ? "the batch stays"
          : fmt::format("the batch grows from {} to {}", Grouped(fit.sequences), Counted(least.sequences, "sequence"));
  return fmt::format("the least number of ranks that fits, {}: {}{}\n", keys, Grouped(least.ranks),
                     least.hosts == 1 ? "" : fmt::format(" ({})", Counted(least.hosts, "host"))) +
         (least.row.knob.sets.empty() ? ""
                                      : Wrapped(" " + OptionsText(least.row.knob), 4) +
                                            Wrapped(fmt::format("  {}{}; {}", FormatMemory(least.row.figures->reserved),
                                                                StepText(fit, *least.row.figures), batch),
                                                    4));
}

/// Returns "activations of one sequence take 135 GiB".
static auto StaysText(const MostThatStays& stays) -> std::string {
  const std::string what = stays.category == Category::Activations ? "activations of one sequence"
                           : stays.category == Category::Gathered  ? "gathered units"
                           : stays.category == Category::Gradients ? "gradients of whole units"
                                                                   : std::string(ToText(stays.category));
  return fmt::format("{} take {}", what, FormatMemory(stays.bytes));
}

auto LeastRanksText(const FitUse& fit) -> std::string {
  std::string text;
  if (fit.least_ranks) {
    text += RanksText(fit, *fit.least_ranks, "other keys as they are");
  } else if (fit.stays) {
    text += fmt::format("more ranks alone do not help: {}\n", StaysText(*fit.stays));
  }
  if (fit.least_with_keys) {
    return text + RanksText(fit, *fit.least_with_keys, "other keys changed too");
  }
  return fit.fits_with_keys() || fit.least_ranks
             ? text
             : text + fmt::format("no number of ranks up to {} fits, with other keys changed too\n",
                                  Grouped(MostRanksTried));
}

auto GrownText(const FitUse& fit) -> std::string {
  if (fit.grown.empty()) {
    return "";
  }
  Table table("  ");
  const bool has_time = fit.now.time.has_value();
  std::vector<std::string> head{"memory", "fits", "tokens per step", "--set"};
  if (has_time) {
    head.insert(head.begin() + 2, "tokens/s");
  }
  table.Row(head);
  std::string refused;
  for (const auto& [tokens, row] : fit.grown) {
    if (!row.figures) {
      refused += Wrapped(fmt::format("  not {}: {}", SetsText(row.knob), row.knob.refused), 4);
      continue;
    }
    const PlanFigures& figures = *row.figures;
    std::vector<std::string> cells{FormatMemory(figures.reserved), fit.fits(figures) ? "yes" : "no", Grouped(tokens),
                                   SetsText(row.knob)};
    if (has_time) {
      cells.insert(cells.begin() + 2, Grouped(std::llround(static_cast<double>(tokens) / figures.time->step().value)));
    }
    table.Row(cells);
  }
  return "\nlarger microbatches, up to the first that does not fit\n" + table.Text() + refused;
}

/// Returns the verdict, and the table up to the recipe as it is.
static auto NowText(const FitUse& fit) -> std::string {
  std::string out = Wrapped(fit.fits() ? fmt::format("fits: {}, of the {}; {} are left", TakenText(fit),
                                                     BudgetText(fit.budget), FormatMemory(fit.left(fit.now)))
                                       : fmt::format("does not fit: {}, {} more than the {}", TakenText(fit),
                                                     FormatMemory(Bytes{} - fit.left(fit.now)), BudgetText(fit.budget)),
                            2);
  if (fit.device_of_machine) {
    out += fmt::format("planned with run.device={}, as the recipe names no device\n", ToText(*fit.device_of_machine));
  }
  if (fit.budget.machine != nullptr && !fit.budget.machine->runs_plans &&
      FactsOf(fit.device).family == DeviceFamily::Cuda) {
    out +=
        Wrapped(fmt::format("{} lacks the instructions of Hopper, which the kernels for GPUs take: the plan does not "
                            "run there",
                            fit.budget.machine->name),
                2);
  }
  if (fit.now.time && fit.steps > 0) {
    out += RunText(fit);
  }
  if (!fit.has_recipe) {
    return out + "a plan file cannot change; name its recipe to see what each key would change\n";
  }
  out += "\none change at a time, same batch and ranks; memory per rank, FLOPs and bytes sent per step and rank\n";
  if (fit.now.time) {
    const std::string caveat = CaveatOf(*fit.now.time);
    out += Wrapped(fmt::format("step: its time, estimated for {}{}{}", fit.now.time->machine->name,
                               caveat.empty() ? "" : "; ", caveat),
                   2);
  }
  return out + TableLine(fit, {"memory", "change", "fits", "FLOPs", "on the wire", "--set"}, "step") +
         RowText(fit, fit.now, "", "(as it is)");
}

static auto RefusedText(const FitUse& fit) -> std::string {
  std::string text;
  for (const KnobRow& row : fit.knobs) {
    text += row.figures ? "" : Wrapped(fmt::format("  not {}: {}", SetsText(row.knob), row.knob.refused), 4);
  }
  return text;
}

auto FitPartText(const FitUse& fit, FitPart part, size_t row) -> std::string {
  switch (part) {
    case FitPart::Now: return NowText(fit);
    case FitPart::Row: {
      const auto& [knob, figures] = fit.knobs.at(row);
      return figures ? RowText(fit, *figures, SignedMemory(figures->reserved - fit.now.reserved), SetsText(knob)) : "";
    }
    case FitPart::Refused: return RefusedText(fit);
    case FitPart::Keys: return "\n" + CheapestText(fit);
    case FitPart::Ranks: return LeastRanksText(fit);
    case FitPart::Grown: return GrownText(fit);
  }
  CHECK(false, "part {}", static_cast<int>(part));
}

auto RenderFitText(const FitUse& fit) -> std::string {
  std::string text;
  ForEachPart(fit, [&](FitPart part, size_t row) { text += FitPartText(fit, part, row); });
  return text;
}

}  // namespace shardc
