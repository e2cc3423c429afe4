// Which device a rank of a CPU program has.
#include "runtime/device/cpu/shuffled_device.h"

namespace shardc {

auto MakeDevice(const Plan& plan, const DevicePlace& place) -> ErrorOr<std::unique_ptr<RankDevice>> {
  auto arenas = ArenaSet::Create(*place.arenas, place.rank);
  if (!arenas) {
    return arenas.error();
  }
  if (place.shuffles) {
    return std::unique_ptr<RankDevice>(std::make_unique<ShuffledDevice>(plan, *std::move(arenas)));
  }
  return std::unique_ptr<RankDevice>(std::make_unique<CpuDevice>(plan, *std::move(arenas)));
}

}  // namespace shardc
