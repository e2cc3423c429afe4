// The rows of schemas/machines.def: products that plans and runs are held against.
#pragma once

#include <span>
#include <string_view>

namespace shardc {

/// A number, and who says so.
struct Figure {
  double value = 0;
  std::string_view source;
};

struct MachineRow {
  std::string_view name;
  std::string_view product;
  /// Name by which the driver knows it.
  std::string_view card;
  /// Has it Hopper's instructions, which the kernels of shardc-run-cuda take?
  bool runs_plans = true;
  /// Bytes that the driver reports to a program.
  Figure memory;
  /// Operations per second in bf16, without sparsity.
  Figure peak_bf16;
  /// Operations per second in f32, without tensor cores.
  Figure peak_f32;
  /// Bytes per second, of the device's memory.
  Figure memory_bandwidth;
  /// Bytes per second in one direction, to the other devices of the host.
  Figure link_bandwidth;
  /// Bytes per second in one direction, to other hosts, for each device.
  Figure network_bandwidth;
  /// Bytes that driver, collectives and libraries take beside the plan's arenas.
  Figure outside_arenas;
};

auto MachineRows() -> std::span<const MachineRow>;
/// Null if no row has that name.
auto FindMachine(std::string_view name) -> const MachineRow*;
/// Returns the row of a card, as its driver names it; null if no row is that of the card.
auto MachineOfCard(std::string_view card) -> const MachineRow*;

}  // namespace shardc
