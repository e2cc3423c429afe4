// Why a GPU runs with lower clocks than it could: at its power limit, as a GPU that trains often is, or because it is
// too hot or gets too little power, which somebody should look at.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/nvml.h"

namespace shardc {

class ClockLimits {
 public:
  struct Told {
    /// False of a limit that is usual.
    bool is_warning = false;
    /// "lowers its clocks: it is at its power limit (700 W)".
    std::string text;
  };

  /// Watches the GPU with this address on PCI; none if it is empty.
  explicit ClockLimits(std::string pci_address) : pci_address_(std::move(pci_address)) {}

  /// Asks the driver. Returns the limits that it names for the first time; nothing without NVML, which is loaded at the
  /// first call: that takes a while.
  auto Look() -> std::vector<Told>;

 private:
  /// Empty once it has been looked for.
  std::string pci_address_;
  const NvmlApi* api_ = nullptr;
  NvmlApi::Gpu gpu_ = nullptr;
  /// Limits that were told.
  uint64_t told_ = 0;
};

}  // namespace shardc
