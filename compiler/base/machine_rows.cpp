#include "compiler/base/machine_rows.h"

#include <algorithm>

namespace shardc {

auto MachineRows() -> std::span<const MachineRow> {
  constexpr double GiB = 1 << 30;
  static constexpr std::array Rows{
#define MACHINE(the_name, the_product, ...) MachineRow{.name = the_name, .product = the_product, __VA_ARGS__},
#include "schemas/machines.def"
  };
  return Rows;
}

static auto FindRow(std::string_view text, std::string_view MachineRow::*field) -> const MachineRow* {
  const auto row = std::ranges::find(MachineRows(), text, field);
  return row == MachineRows().end() ? nullptr : &*row;
}

auto FindMachine(std::string_view name) -> const MachineRow* { return FindRow(name, &MachineRow::name); }

auto MachineOfCard(std::string_view card) -> const MachineRow* { return FindRow(card, &MachineRow::card); }

}  // namespace shardc
