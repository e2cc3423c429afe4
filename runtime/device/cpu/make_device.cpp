// Which device a rank has.
#include "runtime/device/cpu/shuffled_device.h"
#include "runtime/device/family.h"

namespace shardc {

static auto MakeCpuDevice(const Plan& plan, const DevicePlace& place) -> ErrorOr<std::unique_ptr<RankDevice>> {
  ASSIGN_OR_RETURN(auto arenas, ArenaSet::Create(*place.arenas, place.rank));
  if (place.shuffles) {
    return std::unique_ptr<RankDevice>(std::make_unique<ShuffledDevice>(plan, std::move(arenas)));
  }
  return std::unique_ptr<RankDevice>(std::make_unique<CpuDevice>(plan, std::move(arenas)));
}

auto HostArenas(const Plan& plan) -> ArenaSizes {
  switch (FactsOf(plan.device).family) {
    case DeviceFamily::Cpu: return plan.arena_bytes;
    case DeviceFamily::Cuda: return {};
  }
  CHECK(false, "a device of no family");
}

auto MakeDevice(const Plan& plan, const DevicePlace& place) -> ErrorOr<std::unique_ptr<RankDevice>> {
  switch (FactsOf(plan.device).family) {
    case DeviceFamily::Cpu: return MakeCpuDevice(plan, place);
    case DeviceFamily::Cuda: return PartsOf(DeviceFamily::Cuda).make_device(plan, place);
  }
  CHECK(false, "a device of no family");
}

}  // namespace shardc
