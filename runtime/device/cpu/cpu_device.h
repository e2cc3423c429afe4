// The CPU as a device: arenas are mappings of the process, and each queue is the caller's thread, so that an op has run
// when Enqueue returns. Ops then run in the order of the list, whatever their streams.
#pragma once

#include <array>
#include <vector>

#include "runtime/device/device.h"

namespace shardc {

class CpuDevice : public RankDevice {
 public:
  CpuDevice(const Plan& plan, ArenaSet arenas);
  // Queues know where their device is.
  CpuDevice(const CpuDevice&) = delete;
  auto operator=(const CpuDevice&) -> CpuDevice& = delete;

  auto Base(Arena arena) const -> std::byte* override { return arenas_.Base(arena); }
  auto queue(Stream stream) -> Queue& override { return queues_[static_cast<size_t>(stream)]; }
  auto scalars() -> ScalarTable& override { return scalars_; }
  auto BeginSection(const SectionStart& start, const ScalarTable& host) -> Status override;
  auto EndSection(ScalarTable& host) -> Status override;
  auto MeasureUse() const -> std::vector<ArenaUse> override { return arenas_.MeasureUse(); }

 private:
  class InlineQueue final : public Queue {
   public:
    explicit InlineQueue(CpuDevice* device) : device_(*device) {}
    auto Enqueue(Turns& turns, size_t index, const Moment& moment) -> Status override {
      return turns.RunTurn(index, moment);
    }
    auto Wait(EventId event) -> Status override;
    auto Signal(EventId event) -> Status override;
    auto Read(const std::byte* from, int64_t bytes, HostScratch& scratch) -> ErrorOr<const std::byte*> override;
    auto BeginWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> std::byte* override;
    auto EndWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> Status override;

   private:
    CpuDevice& device_;
  };

  ArenaSet arenas_;
  ScalarTable scalars_;
  /// Counts the sections that began.
  uint32_t section_ = 0;
  /// By event: the section that signalled it last.
  std::vector<uint32_t> signalled_in_;
  std::vector<InlineQueue> queues_;
};

}  // namespace shardc
