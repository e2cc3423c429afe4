#include "compiler/base/units.h"

#include <fmt/format.h>

#include <array>

namespace shardc {

/// Scales by `step` until under it; three significant digits, none lost for plain units.
template <size_t N>
static auto Scaled(double value, double step, const std::array<const char*, N>& names) -> std::string {
  size_t i = 0;
  while (value >= step && i + 1 < N) {
    value /= step;
    ++i;
  }
  if (i == 0) {
    return fmt::format("{:.0f} {}", value, names[0]);
  }
  const int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, names[i]);
}

auto FormatMemory(Bytes bytes) -> std::string {
  return Scaled(static_cast<double>(bytes.value), 1024.0, std::array{"B", "KiB", "MiB", "GiB", "TiB"});
}

auto FormatWire(Bytes bytes) -> std::string {
  return Scaled(static_cast<double>(bytes.value), 1000.0, std::array{"B", "kB", "MB", "GB", "TB"});
}

auto FormatFlops(Flops flops) -> std::string { return FormatFlops(static_cast<double>(flops.value)); }

auto FormatFlops(double flops) -> std::string {
  return Scaled(flops, 1000.0, std::array{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"});
}

}  // namespace shardc
