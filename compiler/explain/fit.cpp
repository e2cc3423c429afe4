#include "compiler/explain/fit.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "compiler/diag/diagnostics.h"
#include "compiler/explain/table.h"
#include "compiler/explain/text_parts.h"

namespace shardc {

/// Returns the name of the nearest machine, or of all.
static auto HelpOnMachines(std::string_view name) -> std::string {
  std::vector<std::string_view> names;
  for (const MachineRow& row : MachineRows()) {
    names.push_back(row.name);
  }
  const std::string closest = ClosestWord(name, names);
  return closest.empty() ? fmt::format("machines: {}", fmt::join(names, ", "))
                         : fmt::format("did you mean {}?", closest);
}

static auto MachineBudget(std::string_view asked) -> ErrorOr<MemoryBudget> {
  std::string name(asked);
  std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
  const std::string_view text = name;
  const MachineRow* found = nullptr;
  for (const MachineRow& row : MachineRows()) {
    if (row.name == text || (row.name.starts_with(text) && found == nullptr)) {
      found = &row;
    } else if (row.name.starts_with(text) && found->name != text) {
      return Fail(ExitCode::Usage, "--fit: `{}` may be {} or {}", text, found->name, row.name);
    }
  }
  if (text.empty() || found == nullptr) {
    return Fail(ExitCode::Usage, "--fit: `{}` is neither an amount of memory, such as 80GiB, nor a machine; {}", asked,
                HelpOnMachines(text));
  }
  const double bytes = found->memory.value - found->outside_arenas.value;
  return MemoryBudget{.bytes = Bytes{static_cast<int64_t>(bytes)}, .machine = found};
}

auto ParseBudget(std::string_view text) -> ErrorOr<MemoryBudget> {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) {
    return MachineBudget(text);
  }
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr std::array Units{Unit{"B", 1},        Unit{"KiB", 0x1p10}, Unit{"MiB", 0x1p20},
                             Unit{"GiB", 0x1p30}, Unit{"TiB", 0x1p40}, Unit{"kB", 1e3},
                             Unit{"MB", 1e6},     Unit{"GB", 1e9},     Unit{"TB", 1e12}};
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  for (const Unit& known : Units) {
    // A plan has far less than 2^62 bytes, and so has a rank.
    if (fault == std::errc() && unit == known.name && number * known.bytes < 0x1p62) {
      return MemoryBudget{.bytes = Bytes{static_cast<int64_t>(number * known.bytes)}};
    }
  }
  const size_t sign = unit.size() > 1 && (unit[1] == '+' || unit[1] == '-') ? 1 : 0;
  if ((unit.starts_with('e') || unit.starts_with('E')) && unit.size() > 1 + sign &&
      std::isdigit(static_cast<unsigned char>(unit[1 + sign])) != 0) {
    return Fail(ExitCode::Usage, "--fit: `{}` has an exponent; write the number out, such as 1000GiB", text);
  }
  return Fail(
      ExitCode::Usage,
      "--fit: `{}` is no amount of memory: write a number and one of B, KiB, MiB, GiB, TiB, kB, MB, GB, TB, such "
      "as 80GiB",
      text);
}

static auto BudgetText(const FitUse& fit) -> std::string {
  const MemoryBudget& budget = fit.budget;
  if (budget.machine == nullptr) {
    return fmt::format("{} that `--fit` allows", FormatMemory(budget.bytes));
  }
  const Bytes communicators = fit.now.communicators;
  return fmt::format(
      "{} that {} has for arenas ({} less {} outside them{})", FormatMemory(budget.bytes - communicators),
      budget.machine->name, FormatMemory(Bytes{static_cast<int64_t>(budget.machine->memory.value)}),
      FormatMemory(Bytes{static_cast<int64_t>(budget.machine->outside_arenas.value)}),
      communicators == Bytes{} ? ""
                               : fmt::format(" and {} for communicators between hosts", FormatMemory(communicators)));
}

static auto KnobTable(const FitUse& fit) -> std::string {
  Table table("  ");
  table.Row({"memory", "change", "fits", "FLOPs", "on the wire", "--set"});
  const auto row = [&](const PlanFigures& figures, std::string change, std::string sets) {
    table.Row({FormatMemory(figures.reserved), std::move(change), fit.fits(figures) ? "yes" : "no",
               FormatFlops(figures.flops.all()), FormatMemory(figures.wire), std::move(sets)});
  };
  row(fit.now, "", "(as it is)");
  for (const KnobRow& knob : fit.knobs) {
    if (knob.figures) {
      row(*knob.figures, SignedMemory(knob.figures->reserved - fit.now.reserved), SetsText(knob.knob));
    }
  }
  return table.Text();
}

auto RenderFitText(const FitUse& fit) -> std::string {
  std::string out = Wrapped(
      fit.fits() ? fmt::format("fits: each rank takes {} of the {}; {} are left", FormatMemory(fit.now.reserved),
                               BudgetText(fit), FormatMemory(fit.left(fit.now)))
                 : fmt::format("does not fit: each rank takes {}, {} more than the {}", FormatMemory(fit.now.reserved),
                               FormatMemory(Bytes{} - fit.left(fit.now)), BudgetText(fit)),
      2);
  if (fit.device_of_machine) {
    out += fmt::format("planned with run.device={}, as the recipe names no device\n", ToText(*fit.device_of_machine));
  }
  if (!fit.has_recipe) {
    return out + "a plan file cannot change; name its recipe to see what each key would change\n";
  }
  out += "\nwhat each key would change; the recipe was planned with each --set, and batch and ranks stay\n";
  out += "memory is that of all arenas of a rank, FLOPs and wire are those of a step on a rank\n" + KnobTable(fit);
  for (const KnobRow& knob : fit.knobs) {
    if (!knob.figures) {
      out += Wrapped(fmt::format("  not {}: {}", SetsText(knob.knob), knob.knob.refused), 4);
    }
  }
  return out;
}

}  // namespace shardc
