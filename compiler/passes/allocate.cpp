// The byte offset of every buffer, and the size of every arena.
//
// Needs: releases. Gives: offsets in which no two buffers that live at once overlap.
//   1. persistent arenas: one buffer after another
//   2. the others, section by section (sections never run at once): largest buffer first, each at the lowest offset
//      where it meets no buffer that lives at the same time
// Source of 2: greedy by size, Pisarchyk and Lee 2020, "Efficient Memory Management for Deep Neural Net Inference", 5.2.
#include <algorithm>
#include <unordered_map>

#include "compiler/passes/pass.h"

namespace shardc {

namespace {

/// Offsets are multiples of this many bytes: a cache line, and what vector loads and the copy engines like.
constexpr int64_t OffsetAlignment = 256;

struct Lifetime {
  BufferId buffer;
  size_t begin = 0;
  size_t end = 0;
};

auto LifetimesOf(const Plan& plan, const Section& section) -> std::vector<Lifetime> {
  std::vector<Lifetime> lifetimes;
  std::unordered_map<BufferId, size_t> index;
  for (size_t i = 0; i < section.ops.size(); ++i) {
    for (const Access& access : AccessesOf(section.ops[i].body)) {
      const BufferId buffer = plan.values[access.value].buffer;
      if (!IsPersistent(plan.buffers[buffer].arena) && index.try_emplace(buffer, lifetimes.size()).second) {
        lifetimes.push_back({buffer, i, section.ops.size()});
      }
    }
    if (const auto* release = section.ops[i].As<op::Release>()) {
      lifetimes[index.at(release->buffer)].end = i;
    }
  }
  return lifetimes;
}

/// Places buffers of one arena one at a time; keeps what it placed ordered by offset.
class ArenaPacker {
 public:
  /// The lowest aligned offset where `bytes` meet no placed buffer alive within [begin, end].
  auto Place(const Lifetime& lifetime, int64_t bytes) -> int64_t {
    int64_t offset = 0;
    for (const Placed& other : placed_) {
      if (other.offset >= offset + bytes) {
        break;
      }
      if (other.begin <= lifetime.end && lifetime.begin <= other.end && other.offset + other.bytes > offset) {
        offset = RoundUp(other.offset + other.bytes, OffsetAlignment);
      }
    }
    const Placed placed{offset, bytes, lifetime.begin, lifetime.end};
    placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), placed,
                                    [](const Placed& a, const Placed& b) { return a.offset < b.offset; }),
                   placed);
    high_water_ = std::max(high_water_, offset + bytes);
    return offset;
  }
  auto high_water() const -> int64_t { return high_water_; }

 private:
  struct Placed {
    int64_t offset;
    int64_t bytes;
    size_t begin;
    size_t end;
  };
  std::vector<Placed> placed_;
  int64_t high_water_ = 0;
};

}  // namespace

auto Allocate(Plan plan, PassContext&) -> ErrorOr<Plan> {
  for (Buffer& buffer : plan.buffers) {
    if (IsPersistent(buffer.arena)) {
      int64_t& end = plan.arena_bytes[static_cast<size_t>(buffer.arena)];
      buffer.offset = RoundUp(end, OffsetAlignment);
      end = buffer.offset + buffer.bytes.value;
    }
  }
  for (const Section& section : plan.sections) {
    std::vector<Lifetime> lifetimes = LifetimesOf(plan, section);
    std::stable_sort(lifetimes.begin(), lifetimes.end(), [&](const Lifetime& a, const Lifetime& b) {
      return plan.buffers[a.buffer].bytes > plan.buffers[b.buffer].bytes;
    });
    std::array<ArenaPacker, NumArenas> packers;
    for (const Lifetime& lifetime : lifetimes) {
      Buffer& buffer = plan.buffers[lifetime.buffer];
      const auto arena = static_cast<size_t>(buffer.arena);
      buffer.offset = packers[arena].Place(lifetime, buffer.bytes.value);
      plan.arena_bytes[arena] = std::max(plan.arena_bytes[arena], packers[arena].high_water());
    }
  }
  return plan;
}

}  // namespace shardc
