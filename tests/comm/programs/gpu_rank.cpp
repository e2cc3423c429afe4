#include "tests/comm/programs/gpu_rank.h"

#include "runtime/device/family.h"

namespace shardc {

auto PlanOfCollectives(const Mesh& mesh, const std::vector<AxisSet>& sets, int64_t shared_bytes, int64_t own_bytes)
    -> Plan {
  Plan plan;
  plan.device = Device::CudaSm90;
  plan.mesh = mesh;
  plan.run.comm = Comm::Shm;
  plan.run.share_gpus = true;
  plan.arena_bytes[static_cast<size_t>(Arena::SharedTransient)] = shared_bytes;
  plan.arena_bytes[static_cast<size_t>(Arena::Transient)] = own_bytes;
  for (const Stream stream : StreamsOfCollectives) {
    for (const AxisSet axes : sets) {
      plan.section(SectionKind::Step)
          .ops.push_back({.body = op::AllReduce{.x = {}, .y = {}, .scratch = {}, .axes = axes}, .stream = stream});
    }
  }
  return plan;
}

auto GpuRank::Create(const Plan& plan, const std::shared_ptr<HostMember>& member, bool lags)
    -> ErrorOr<std::unique_ptr<GpuRank>> {
  std::unique_ptr<GpuRank> rank(new GpuRank(member));
  ControlBlock& block = member->block();
  auto arenas = SharedArenas::Create({}, block.ranks());
  if (!arenas) {
    return arenas.error();
  }
  rank->arenas_ = *std::move(arenas);
  auto device = MakeDevice(plan, {.arenas = &rank->arenas_,
                                  .rank = member->rank(),
                                  .local_rank = member->rank() - block.ranks().begin,
                                  .member = member.get(),
                                  .look = [&block, number = member->rank()] { return block.Listen(number); },
                                  .timeout = Seconds{60},
                                  .shuffles = lags});
  if (!device) {
    return device.error();
  }
  rank->device_ = *std::move(device);
  auto engine = PartsOf(DeviceFamily::Cuda).make_engine(*rank->device_, member, nullptr);
  if (!engine) {
    return engine.error();
  }
  rank->engine_ = engine->get();
  rank->comm_ = std::make_unique<LayeredCommunicator>(*std::move(engine), plan.mesh, plan.run.comm);
  return rank;
}

}  // namespace shardc
