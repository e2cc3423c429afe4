#include "runtime/device/cpu/shuffled_device.h"

#include <algorithm>
#include <cstring>

namespace shardc {

ShuffledDevice::ShuffledDevice(const Plan& plan, ArenaSet arenas)
    : CpuDevice(plan, std::move(arenas)),
      last_signal_(static_cast<size_t>(plan.num_events), 0),
      queues_(NumStreams, KeepingQueue(this)) {}

auto ShuffledDevice::BeginSection(const SectionStart& start, const ScalarTable& host) -> Status {
  for (KeepingQueue& queue : queues_) {
    // What a section left that failed.
    queue.entries.clear();
  }
  std::ranges::fill(last_signal_, 0);
  is_over_.clear();
  keeps_ = start.order.has_value();
  if (keeps_) {
    std::seed_seq mixed{static_cast<uint32_t>(*start.order), static_cast<uint32_t>(*start.order >> 32),
                        static_cast<uint32_t>(start.section), static_cast<uint32_t>(start.step)};
    random_.seed(mixed);
    for (uint64_t& weight : eagerness_) {
      weight = uint64_t{1} << (random_() % 8);
    }
  }
  return CpuDevice::BeginSection(start, host);
}

auto ShuffledDevice::EndSection(ScalarTable& host) -> Status {
  RETURN_IF_ERROR(Drain());
  return CpuDevice::EndSection(host);
}

auto ShuffledDevice::is_kept() const -> bool {
  return std::ranges::any_of(queues_, [](const KeepingQueue& queue) { return !queue.entries.empty(); });
}

auto ShuffledDevice::PassEvents() -> void {
  for (bool has_passed = true; has_passed;) {
    has_passed = false;
    for (KeepingQueue& queue : queues_) {
      while (!queue.entries.empty()) {
        const Entry& head = queue.entries.front();
        if (head.kind == EntryKind::Turn || (head.kind == EntryKind::Wait && !is_over_[head.index])) {
          break;
        }
        if (head.kind == EntryKind::Signal) {
          is_over_[head.index] = true;
        }
        queue.entries.pop_front();
        has_passed = true;
      }
    }
  }
}

auto ShuffledDevice::Drain() -> Status {
  for (PassEvents(); is_kept(); PassEvents()) {
    std::array<uint64_t, NumStreams> weights{};
    uint64_t total = 0;
    for (size_t s = 0; s < NumStreams; ++s) {
      const std::deque<Entry>& entries = queues_[s].entries;
      weights[s] = !entries.empty() && entries.front().kind == EntryKind::Turn ? eagerness_[s] : 0;
      total += weights[s];
    }
    CHECK(total > 0, "no queue may run what it keeps");
    uint64_t draw = random_() % total;
    size_t stream = 0;
    while (draw >= weights[stream]) {
      draw -= weights[stream++];
    }
    const Entry next = queues_[stream].entries.front();
    queues_[stream].entries.pop_front();
    RETURN_IF_ERROR(next.turns->RunTurn(next.index, next.moment));
  }
  return Success{};
}

auto ShuffledDevice::KeepingQueue::Enqueue(Turns& turns, size_t index, const Moment& moment) -> Status {
  if (!device_.keeps_) {
    return turns.RunTurn(index, moment);
  }
  entries.push_back({.kind = EntryKind::Turn, .turns = &turns, .moment = moment, .index = index});
  return Success{};
}

auto ShuffledDevice::KeepingQueue::Wait(EventId event) -> Status {
  const size_t signal = device_.last_signal_[static_cast<size_t>(event.index)];
  if (signal == 0) {
    return NeverSignalled(event);
  }
  entries.push_back({.kind = EntryKind::Wait, .moment = {}, .index = signal - 1});
  return Success{};
}

auto ShuffledDevice::KeepingQueue::Signal(EventId event) -> Status {
  entries.push_back({.kind = EntryKind::Signal, .moment = {}, .index = device_.is_over_.size()});
  device_.is_over_.push_back(false);
  device_.last_signal_[static_cast<size_t>(event.index)] = device_.is_over_.size();
  return Success{};
}

auto ShuffledDevice::KeepingQueue::Read(const std::byte* from, int64_t bytes, HostScratch& scratch)
    -> ErrorOr<const std::byte*> {
  std::byte* const copy = scratch.Reserve(bytes);
  if (bytes > 0) {
    std::memcpy(copy, from, static_cast<size_t>(bytes));
  }
  return static_cast<const std::byte*>(copy);
}

auto ShuffledDevice::KeepingQueue::BeginWrite(std::byte*, int64_t bytes, HostScratch& scratch) -> std::byte* {
  return scratch.Reserve(bytes);
}

auto ShuffledDevice::KeepingQueue::EndWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> Status {
  if (bytes > 0) {
    std::memcpy(to, scratch.Reserve(bytes), static_cast<size_t>(bytes));
  }
  return Success{};
}

}  // namespace shardc
