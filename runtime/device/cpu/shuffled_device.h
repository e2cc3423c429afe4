// For tests: a CPU device that keeps what is enqueued until the section ends, and then runs it in a random order, among
// those that its queues and events allow. The host reads and writes copies, as it does of an accelerator.
//
// An order is legal if each queue runs its turns first in, first out, and no turn runs before the events that stand
// before it in its queue. A plan whose events do not order some hazard has legal orders with other results.
#pragma once

#include <array>
#include <deque>
#include <random>
#include <vector>

#include "runtime/device/cpu/cpu_device.h"

namespace shardc {

class ShuffledDevice final : public CpuDevice {
 public:
  ShuffledDevice(const Plan& plan, ArenaSet arenas);

  auto queue(Stream stream) -> Queue& override { return queues_[static_cast<size_t>(stream)]; }
  auto BeginSection(const SectionStart& start, const ScalarTable& host) -> Status override;
  auto EndSection(ScalarTable& host) -> Status override;

 private:
  enum class EntryKind : uint8_t { Turn, Wait, Signal };
  struct Entry {
    EntryKind kind = EntryKind::Turn;
    /// Turn: what runs.
    Turns* turns = nullptr;
    Moment moment;
    /// Turn: the op. Wait, Signal: the number of the signal, counted from the beginning of the section.
    size_t index = 0;
  };
  class KeepingQueue final : public Queue {
   public:
    explicit KeepingQueue(ShuffledDevice* device) : device_(*device) {}
    auto Enqueue(Turns& turns, size_t index, const Moment& moment) -> Status override;
    auto Wait(EventId event) -> Status override;
    auto Signal(EventId event) -> Status override;
    auto Read(const std::byte* from, int64_t bytes, HostScratch& scratch) -> ErrorOr<const std::byte*> override;
    auto BeginWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> std::byte* override;
    auto EndWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> Status override;

    std::deque<Entry> entries;

   private:
    ShuffledDevice& device_;
  };

  /// Runs everything that the queues keep.
  auto Drain() -> Status;
  /// Takes the waits that are over and the signals from the heads of all queues.
  auto PassEvents() -> void;
  auto is_kept() const -> bool;

  bool keeps_ = false;
  std::mt19937_64 random_;
  /// Streams differ in how eager they are, so that each runs far ahead of the others under some seeds, and lags far
  /// under others.
  std::array<uint64_t, NumStreams> eagerness_{};
  /// By event: its last signal, plus 1; 0: it has none in this section.
  std::vector<size_t> last_signal_;
  /// By signal: has its queue come to it?
  std::vector<bool> is_over_;
  std::vector<KeepingQueue> queues_;
};

}  // namespace shardc
