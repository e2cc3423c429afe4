// A device in the place of another: the host reads and writes copies, as it does of an accelerator, and reads are
// counted.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "runtime/device/device.h"

namespace shardc {

class CountingDevice final : public RankDevice {
 public:
  /// Stands for `inner`, which gives its memory to the host and outlives this.
  explicit CountingDevice(RankDevice* inner) : inner_(*inner) {
    for (size_t i = 0; i < NumStreams; ++i) {
      queues_.emplace_back(this, &inner->queue(static_cast<Stream>(i)));
    }
  }
  // Queues know where their device is.
  CountingDevice(const CountingDevice&) = delete;
  auto operator=(const CountingDevice&) -> CountingDevice& = delete;

  auto Base(Arena arena) const -> std::byte* override { return inner_.Base(arena); }
  auto queue(Stream stream) -> Queue& override { return queues_[static_cast<size_t>(stream)]; }
  auto scalars() -> ScalarTable& override { return inner_.scalars(); }
  auto BeginSection(const SectionStart& start, const ScalarTable& host) -> Status override {
    return inner_.BeginSection(start, host);
  }
  auto EndSection(ScalarTable& host) -> Status override { return inner_.EndSection(host); }
  auto is_lost() const -> bool override { return is_lost_now; }
  auto MeasureUse() const -> std::vector<ArenaUse> override { return inner_.MeasureUse(); }

  int64_t num_reads = 0;
  std::string last_turn;
  bool is_lost_now = false;

 private:
  class CountingQueue final : public Queue {
   public:
    CountingQueue(CountingDevice* device, Queue* inner) : device_(*device), inner_(*inner) {}
    auto Enqueue(Turns& turns, size_t index, const Moment& moment) -> Status override {
      device_.last_turn = turns.NameOfTurn(index);
      return inner_.Enqueue(turns, index, moment);
    }
    auto Wait(EventId event) -> Status override { return inner_.Wait(event); }
    auto Signal(EventId event) -> Status override { return inner_.Signal(event); }
    auto Read(const std::byte* from, int64_t bytes, HostScratch& scratch) -> ErrorOr<const std::byte*> override {
      ++device_.num_reads;
      std::byte* const copy = scratch.Reserve(bytes);
      Copy(from, bytes, copy);
      return static_cast<const std::byte*>(copy);
    }
    auto BeginWrite(std::byte*, int64_t bytes, HostScratch& scratch) -> std::byte* override {
      return scratch.Reserve(bytes);
    }
    auto EndWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> Status override {
      Copy(scratch.Reserve(bytes), bytes, to);
      return Success{};
    }

   private:
    static auto Copy(const std::byte* from, int64_t bytes, std::byte* to) -> void {
      if (bytes > 0) {
        std::memcpy(to, from, static_cast<size_t>(bytes));
      }
    }

    CountingDevice& device_;
    Queue& inner_;
  };

  RankDevice& inner_;
  std::vector<CountingQueue> queues_;
};

}  // namespace shardc
