#include "compiler/report/machines.h"

#include <fmt/format.h>

namespace shardc {

auto MachineReference() -> std::string {
  constexpr double GiB = 1 << 30;
  std::string text =
      "# Machines\n\n"
      "Made by `shardc docs --machines` from `schemas/machines.def`; a test checks that it is current.\n"
      "Memory is what the driver reports to a program. Peaks are without sparsity. A link is one direction of what\n"
      "connects a device to the others of its host, the network one direction of what connects it to other hosts.\n"
      "Bytes outside the arenas are what driver, collectives and libraries take on one device beside the plan's\n"
      "arenas.\n";
  for (const MachineRow& row : MachineRows()) {
    text += fmt::format("\n## {}\n\n{} (to its driver: {})\n\n| figure | value | source |\n|---|---|---|\n", row.name,
                        row.product, row.card);
    const auto add = [&](std::string_view what, double value, std::string_view unit, const Figure& figure) {
      text += fmt::format("| {} | {:.6g}{}{} | {} |\n", what, value, unit.empty() ? "" : " ", unit, figure.source);
    };
    add("memory", row.memory.value / GiB, "GiB", row.memory);
    add("peak, bf16", row.peak_bf16.value / 1e12, "TFLOP/s", row.peak_bf16);
    add("peak, f32", row.peak_f32.value / 1e12, "TFLOP/s", row.peak_f32);
    add("memory bandwidth", row.memory_bandwidth.value / 1e12, "TB/s", row.memory_bandwidth);
    add("link", row.link_bandwidth.value / 1e9, "GB/s", row.link_bandwidth);
    add("network", row.network_bandwidth.value / 1e9, "GB/s", row.network_bandwidth);
    add("devices of a host", row.devices_per_host.value, "", row.devices_per_host);
    add("outside the arenas", row.outside_arenas.value / GiB, "GiB", row.outside_arenas);
  }
  return text;
}

}  // namespace shardc
