#include "compiler/fit/fit.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "compiler/base/devices.h"
#include "compiler/diag/diagnostics.h"

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
    } else if (row.name.starts_with(text) && !row.name.starts_with(found->name)) {
      return Fail(ExitCode::Usage, "--fit: `{}` may be {} or {}", text, found->name, row.name);
    }
  }
  if (text.empty() || found == nullptr) {
    return Fail(ExitCode::Usage, "--fit: `{}` is neither an amount of memory, such as 80GiB, nor a machine; {}", asked,
                HelpOnMachines(text));
  }
  return MemoryBudget{.bytes = Bytes{static_cast<int64_t>(found->memory.value)}, .machine = found};
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
  const auto small = [](unsigned char letter) { return std::tolower(letter); };
  for (const Unit& known : Units) {
    // A plan has far less than 2^62 bytes, and so has a rank.
    if (fault == std::errc() && std::ranges::equal(unit, known.name, {}, small, small) &&
        number * known.bytes < 0x1p62) {
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

auto RanksOfHost(const MemoryBudget& budget, const Mesh& mesh) -> int64_t {
  constexpr int64_t Usual = 8;
  const int64_t tp = mesh.size(Axis::Tp);
  int64_t ranks = budget.machine != nullptr ? static_cast<int64_t>(budget.machine->devices_per_host.value)
                  : mesh.num_ranks() == 1   ? Usual
                                            : mesh.ranks_per_host();
  while (ranks % tp != 0 && tp % ranks != 0) {
    --ranks;
  }
  return ranks;
}

auto FitUse::outside(const PlanFigures& figures) const -> Bytes {
  if (budget.machine == nullptr && FactsOf(device).family == DeviceFamily::Cpu) {
    return figures.outside;
  }
  // The one that was measured stands for a GPU without a name.
  const MachineRow* machine = budget.machine != nullptr ? budget.machine : FindMachine("h100-sxm");
  return Bytes{static_cast<int64_t>(machine->outside_arenas.value)} + figures.communicators;
}

}  // namespace shardc
