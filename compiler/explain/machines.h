// Products that plans are held against: the rows of schemas/machines.def, and the page that is made from them.
#pragma once

#include <span>
#include <string>
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
  /// Bytes that the driver reports to a program.
  Figure memory;
  /// Operations per second in bf16, without sparsity.
  Figure peak_bf16;
  /// Bytes per second, of the device's memory.
  Figure memory_bandwidth;
  /// Bytes per second in one direction, to the other devices of the host.
  Figure link_bandwidth;
  /// Bytes that driver, collectives and libraries take beside the plan's arenas.
  Figure outside_arenas;
};

auto MachineRows() -> std::span<const MachineRow>;

/// docs/machines.md.
auto MachineReference() -> std::string;

}  // namespace shardc
