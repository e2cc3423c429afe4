// Judges if a plan fits into the memory of a rank, what each change of its recipe would make of that, and which changes
// and ranks are the cheapest that fit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/base/machine_rows.h"
#include "compiler/cost/figures.h"
#include "compiler/fit/knobs.h"

namespace shardc {

/// The memory that each rank has.
struct MemoryBudget {
  Bytes bytes;
  /// The product that was named. Null where a number was.
  const MachineRow* machine = nullptr;
};

/// Parses "80GiB", "80 GB", or a machine by its name or the beginning of it: "h100". Errors: Usage.
auto ParseBudget(std::string_view text) -> ErrorOr<MemoryBudget>;

/// Returns how many ranks a host has: the devices of the machine's. Of an amount of memory, as many as the recipe's
/// hosts have, or 8 if it has one rank, which says nothing about hosts. Less if ranks along tp need it, so that hosts
/// have as many of each group.
auto RanksOfHost(const MemoryBudget& budget, const Mesh& mesh) -> int64_t;

struct KnobRow {
  Knob knob;
  /// Nothing where the recipe with this change is refused, as `knob.refused` says.
  std::optional<PlanFigures> figures;
};

/// Ranks along dp that a recipe needs.
struct LeastRanks {
  /// Number along all axes, and the hosts that they are whole ones of, or a divisor of one.
  int64_t ranks = 0;
  int64_t hosts = 1;
  /// Sequences of a step with them.
  int64_t sequences = 0;
  KnobRow row;
};
constexpr int64_t MostRanksTried = 65536;

/// Memory that no more ranks along dp make less, and what the most of it is, with microbatches of one sequence.
struct MostThatStays {
  Category category = Category::Activations;
  Bytes bytes;
};

/// A larger microbatch, of sequences that ranks have in several microbatches as long as there are some.
struct GrownRow {
  /// Number in a step.
  int64_t tokens = 0;
  KnobRow row;
};

struct FitUse {
  MemoryBudget budget;
  PlanFigures now;
  Device device = Device::Cpu;
  /// Sequences of a step, ranks, and steps of the run.
  int64_t sequences = 0;
  int64_t ranks = 1;
  int64_t steps = 0;
  std::vector<KnobRow> knobs;
  /// The combination of keys with the fewest FLOPs that fits; no keys where it is the recipe. Nothing if none fits, or
  /// the fastest was found without it.
  std::optional<KnobRow> cheapest;
  /// The combination with the least time of a step to which a search came that changes one key after another. Nothing
  /// if none fits, or no time is estimated.
  std::optional<KnobRow> fastest;
  std::optional<LeastRanks> least_ranks;
  /// Nothing if the recipe's own ranks suffice with other keys, and if no number of ranks does.
  std::optional<LeastRanks> least_with_keys;
  /// Nothing if some number of ranks fits with the other keys as they are.
  std::optional<MostThatStays> stays;
  /// A plan file is what it is: there is no recipe to change.
  bool has_recipe = true;
  /// Microbatches twice as large each, up to the first that does not fit. Empty if they are not asked for.
  std::vector<GrownRow> grown;
  /// Dollars of a GPU for an hour.
  std::optional<double> price;
  /// For which the recipe was planned, because the machine has it and the recipe names none.
  std::optional<Device> device_of_machine;

  /// Returns what a rank takes beside its arenas: of a GPU driver, libraries and communicators, of a host its share.
  auto outside(const PlanFigures& figures) const -> Bytes;
  /// Returns the memory that a plan leaves, less than nothing if it does not fit.
  auto left(const PlanFigures& figures) const -> Bytes { return budget.bytes - figures.reserved - outside(figures); }
  auto fits(const PlanFigures& figures) const -> bool { return left(figures) >= Bytes{}; }
  auto fits() const -> bool { return fits(now); }
  /// Returns true if other figures, which fit, are better than the recipe as it is: that does not fit, or is slower by
  /// more than what the estimate may be wrong by. Requires: both have a time.
  auto is_better(const PlanFigures& other) const -> bool {
    return !fits() || other.time->step() < now.time->step() * (1 - ErrorOfGain(*now.time, *other.time));
  }
  /// Returns true if a combination of keys fits on the recipe's ranks.
  auto fits_with_keys() const -> bool { return cheapest || fastest; }
};

}  // namespace shardc
