#include "runtime/device/cpu/cpu_device.h"

namespace shardc {

CpuDevice::CpuDevice(const Plan& plan, ArenaSet arenas)
    : arenas_(std::move(arenas)),
      scalars_(static_cast<size_t>(plan.scalars.size())),
      signalled_in_(static_cast<size_t>(plan.num_events), 0),
      queues_(NumStreams, InlineQueue(this)) {}

auto CpuDevice::BeginSection(const SectionStart&, const ScalarTable& host) -> Status {
  ++section_;
  scalars_ = host;
  return Success{};
}

auto CpuDevice::EndSection(ScalarTable& host) -> Status {
  host = scalars_;
  return Success{};
}

auto CpuDevice::InlineQueue::Wait(EventId event) -> Status {
  // What was enqueued before the signal has run, on whatever queue.
  const uint32_t signalled_in = device_.signalled_in_[static_cast<size_t>(event.index)];
  return signalled_in == device_.section_ ? Status(Success{}) : Status(NeverSignalled(event));
}

auto CpuDevice::InlineQueue::Signal(EventId event) -> Status {
  device_.signalled_in_[static_cast<size_t>(event.index)] = device_.section_;
  return Success{};
}

auto CpuDevice::InlineQueue::Read(const std::byte* from, int64_t, HostScratch&) -> ErrorOr<const std::byte*> {
  return from;
}

auto CpuDevice::InlineQueue::BeginWrite(std::byte* to, int64_t, HostScratch&) -> std::byte* { return to; }

auto CpuDevice::InlineQueue::EndWrite(std::byte*, int64_t, HostScratch&) -> Status { return Success{}; }

}  // namespace shardc
