// Whether a plan fits into the memory of a rank, and what each change of its recipe would make of that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/explain/figures.h"
#include "compiler/explain/knobs.h"
#include "compiler/explain/machines.h"

namespace shardc {

/// The memory that each rank has for its arenas.
struct MemoryBudget {
  Bytes bytes;
  /// The product that was named; of it, driver and libraries take a part. Null where a number was.
  const MachineRow* machine = nullptr;
};

/// Parses "80GiB", "80 GB", or a machine by its name or the beginning of it: "h100". Errors: Usage.
auto ParseBudget(std::string_view text) -> ErrorOr<MemoryBudget>;

struct KnobRow {
  Knob knob;
  /// Nothing where the recipe with this change is refused, as `knob.refused` says.
  std::optional<PlanFigures> figures;
};

struct FitUse {
  MemoryBudget budget;
  PlanFigures now;
  std::vector<KnobRow> knobs;
  /// A plan file is what it is: there is no recipe to change.
  bool has_recipe = true;
  /// For which the recipe was planned, because the machine has it and the recipe names none.
  std::optional<Device> device_of_machine;

  /// Returns the memory that a plan leaves, less than nothing if it does not fit. On a machine, communicators take
  /// their part beside the arenas.
  auto left(const PlanFigures& figures) const -> Bytes {
    return budget.bytes - figures.reserved - (budget.machine == nullptr ? Bytes{} : figures.communicators);
  }
  auto fits(const PlanFigures& figures) const -> bool { return left(figures) >= Bytes{}; }
  auto fits() const -> bool { return fits(now); }
};

/// Returns the text for people.
auto RenderFitText(const FitUse& fit) -> std::string;

}  // namespace shardc
