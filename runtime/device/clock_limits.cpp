#include "runtime/device/clock_limits.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace shardc {

namespace {

struct Limit {
  uint64_t reasons = 0;
  bool is_warning = true;
  std::string_view text;
};
constexpr std::array Limits{
    Limit{NvmlApi::SwPowerCap, false, "it is at its power limit"},
    Limit{NvmlApi::SwThermalSlowdown | NvmlApi::HwThermalSlowdown, true, "it is too hot"},
    Limit{NvmlApi::HwPowerBrake, true, "the power supply of the machine holds it back (power brake)"},
    Limit{NvmlApi::HwSlowdown, true, "its hardware slows it down"},
};

}  // namespace

auto ClockLimits::Look() -> std::vector<Told> {
  if (const std::string address = std::exchange(pci_address_, ""); !address.empty()) {
    const NvmlApi* const api = Nvml();
    api_ = api != nullptr && Tells(api->gpu_by_address, address.c_str(), &gpu_) ? api : nullptr;
  }
  unsigned long long reasons = 0;
  if (api_ == nullptr || !Tells(api_->clock_reasons, gpu_, &reasons)) {
    return {};
  }
  if ((reasons & (NvmlApi::HwThermalSlowdown | NvmlApi::HwPowerBrake)) != 0) {
    // The hardware says so beside its reason.
    reasons &= ~NvmlApi::HwSlowdown;
  }
  std::vector<Told> told;
  for (const Limit& limit : Limits) {
    if ((reasons & limit.reasons) == 0 || (told_ & limit.reasons) != 0) {
      continue;
    }
    told_ |= limit.reasons;
    unsigned milliwatts = 0;
    const bool has_watts = limit.reasons == NvmlApi::SwPowerCap && Tells(api_->power_limit, gpu_, &milliwatts);
    told.push_back({limit.is_warning, fmt::format("lowers its clocks: {}{}", limit.text,
                                                  has_watts ? fmt::format(" ({} W)", milliwatts / 1000) : "")});
  }
  return told;
}

}  // namespace shardc
