// The byte offset of every buffer, and the size of every arena.
//
// Needs: releases. Gives: offsets in which no two buffers that live at once overlap.
//   1. persistent arenas: one buffer after another
//   2. the others, section by section (sections never run at once), by several orders of which the best counts: each
//      buffer at the lowest offset where it meets no buffer that lives at the same time. First what is alive when most
//      is, back to back, the longest to live at the bottom, then the rest, largest first. Where that needs more than
//      what is alive at once, all largest first, or the oldest at the bottom; then the highest buffer moved to the
//      front again and again
//   3. with `[run] guard`, each buffer takes a red zone on both sides along
// Source of 2: greedy by size, Pisarchyk and Lee 2020, "Efficient Memory Management for Deep Neural Net
// Inference", 5.2.
#include <algorithm>
#include <bit>
#include <limits>

#include "compiler/base/devices.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/red_zone.h"

namespace shardc {

namespace {

struct Lifetime {
  BufferId buffer;
  int64_t bytes = 0;
  /// `bytes`, rounded up to what offsets are multiples of.
  int64_t taken = 0;
  size_t begin = 0;
  size_t end = 0;
};

auto LifetimesOf(const Plan& plan, const Section& section) -> std::vector<Lifetime> {
  std::vector<Lifetime> lifetimes;
  constexpr size_t None = std::numeric_limits<size_t>::max();
  std::vector<size_t> index_of(static_cast<size_t>(plan.buffers.size()), None);
  for (size_t i = 0; i < section.ops.size(); ++i) {
    for (const Access& access : AccessesOf(section.ops[i].body)) {
      const BufferId buffer = plan.values[access.value].buffer;
      size_t& index = index_of[static_cast<size_t>(buffer.index)];
      if (!IsPersistent(plan.buffers[buffer].arena) && index == None) {
        index = lifetimes.size();
        lifetimes.push_back({.buffer = buffer, .bytes = 0, .taken = 0, .begin = i, .end = section.ops.size()});
      }
    }
    if (const BufferId released = ReleasedBufferOf(section.ops[i].body); released.valid()) {
      lifetimes.at(index_of[static_cast<size_t>(released.index)]).end = i;
    }
  }
  return lifetimes;
}

/// Places buffers of one arena one at a time, each at the lowest aligned offset where it meets no placed buffer that is
/// alive at an op of its own life. This one looks at all that it placed, ordered by offset: quick for few.
class ListPacker {
 public:
  auto Place(const Lifetime& lifetime) -> int64_t {
    int64_t offset = 0;
    for (const Placed& other : placed_) {
      if (other.offset >= offset + lifetime.taken) {
        break;
      }
      // Without branches: which buffers meet, no processor can predict.
      const int64_t after = other.offset + other.taken;
      const bool meets = static_cast<int>(other.begin <= lifetime.end) & static_cast<int>(lifetime.begin <= other.end) &
                         static_cast<int>(after > offset);
      offset = meets ? after : offset;
    }
    const Placed placed{offset, lifetime.taken, lifetime.begin, lifetime.end};
    placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), placed,
                                    [](const Placed& a, const Placed& b) { return a.offset < b.offset; }),
                   placed);
    return offset;
  }

 private:
  struct Placed {
    int64_t offset;
    int64_t taken;
    size_t begin;
    size_t end;
  };
  std::vector<Placed> placed_;
};

/// Ranges of an arena's bytes that buffers have, sorted and apart from each other. Their ends are aligned: no buffer
/// begins in what is lost.
class TakenRanges {
 public:
  auto empty() const -> bool { return ranges_.empty(); }
  /// Returns the lowest aligned offset from `offset` on where `bytes` meet none of the ranges.
  auto FirstFit(int64_t offset, int64_t bytes) const -> int64_t {
    for (auto next = After(offset); next != ranges_.end() && next->begin < offset + bytes; ++next) {
      offset = next->end;
    }
    return offset;
  }
  auto Add(Interval added) -> void {
    // With what it meets, and what it touches, it becomes one.
    const auto first = ranges_.begin() + (After(added.begin - 1) - ranges_.cbegin());
    auto last = first;
    for (; last != ranges_.end() && last->begin <= added.end; ++last) {
      added = {std::min(added.begin, last->begin), std::max(added.end, last->end)};
    }
    if (first == last) {
      ranges_.insert(first, added);
    } else {
      *first = added;
      ranges_.erase(first + 1, last);
    }
  }

 private:
  /// Returns the first range that ends after `offset`.
  auto After(int64_t offset) const -> std::vector<Interval>::const_iterator {
    return std::partition_point(ranges_.begin(), ranges_.end(),
                                [&](const Interval& range) { return range.end <= offset; });
  }
  std::vector<Interval> ranges_;
};

/// Places as ListPacker does, by a tree over the ops of the section: a life is the sum of a few of its nodes, so that a
/// buffer is compared with what its nodes have taken together, and not with each that was placed.
class TreePacker {
 public:
  explicit TreePacker(size_t num_ops)
      : num_leaves_(std::bit_ceil(std::max<size_t>(1, num_ops))), nodes_(2 * num_leaves_) {}

  auto Place(const Lifetime& lifetime) -> int64_t {
    met_.clear();
    Collect(1, 0, num_leaves_, lifetime);
    int64_t offset = 0;
    for (size_t settled = 0; settled < met_.size();) {
      for (const TakenRanges* ranges : met_) {
        const int64_t fit = ranges->FirstFit(offset, lifetime.taken);
        settled = fit == offset ? settled + 1 : 1;
        offset = fit;
        if (settled >= met_.size()) {
          break;
        }
      }
    }
    Take(1, 0, num_leaves_, lifetime, {offset, offset + lifetime.taken});
    return offset;
  }

 private:
  /// A node stands for the ops [begin, end).
  struct Node {
    /// Ranges of buffers that live through all of these ops, and not through all of the parent's. For one op they are
    /// `any`, and left out.
    TakenRanges through;
    /// Ranges of buffers that live at any of these ops.
    TakenRanges any;
  };
  static auto Covers(const Lifetime& lifetime, size_t begin, size_t end) -> bool {
    return lifetime.begin <= begin && end <= lifetime.end + 1;
  }
  static auto IsApart(const Lifetime& lifetime, size_t begin, size_t end) -> bool {
    return lifetime.end < begin || end <= lifetime.begin;
  }

  /// Collects what a life meets.
  auto Collect(size_t node, size_t begin, size_t end, const Lifetime& lifetime) -> void {
    if (nodes_[node].any.empty() || IsApart(lifetime, begin, end)) {
      return;
    }
    const bool covers = Covers(lifetime, begin, end);
    const TakenRanges& met = covers ? nodes_[node].any : nodes_[node].through;
    if (!met.empty()) {
      met_.push_back(&met);
    }
    if (!covers) {
      const size_t middle = begin + (end - begin) / 2;
      Collect(2 * node, begin, middle, lifetime);
      Collect(2 * node + 1, middle, end, lifetime);
    }
  }

  auto Take(size_t node, size_t begin, size_t end, const Lifetime& lifetime, const Interval& range) -> void {
    if (IsApart(lifetime, begin, end)) {
      return;
    }
    nodes_[node].any.Add(range);
    if (end - begin == 1) {
      return;
    }
    if (Covers(lifetime, begin, end)) {
      nodes_[node].through.Add(range);
      return;
    }
    const size_t middle = begin + (end - begin) / 2;
    Take(2 * node, begin, middle, lifetime, range);
    Take(2 * node + 1, middle, end, lifetime, range);
  }

  size_t num_leaves_;
  /// A heap: the root at 1, the children of i at 2i and 2i + 1.
  std::vector<Node> nodes_;
  std::vector<const TakenRanges*> met_;
};

/// Offsets of `lifetimes`, in their order, and where the last one ends.
struct Offsets {
  std::vector<int64_t> offsets;
  int64_t high_water = 0;
  /// Index of a buffer that ends there.
  size_t highest = 0;
};

template <class Packer>
auto PlaceWith(Packer packer, const std::vector<Lifetime>& lifetimes) -> Offsets {
  Offsets placement;
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    placement.offsets.push_back(packer.Place(lifetimes[i]));
    if (const int64_t end = placement.offsets[i] + lifetimes[i].bytes; end > placement.high_water) {
      placement.high_water = end;
      placement.highest = i;
    }
  }
  return placement;
}

auto PlaceInOrder(const std::vector<Lifetime>& lifetimes) -> Offsets {
  // Measured 2026-11-22, tools/dev bench: from about here on the tree is the quicker one.
  constexpr size_t MostInList = 1000;
  if (lifetimes.size() <= MostInList) {
    return PlaceWith(ListPacker(), lifetimes);
  }
  size_t num_ops = 0;
  for (const Lifetime& lifetime : lifetimes) {
    num_ops = std::max(num_ops, lifetime.end + 1);
  }
  return PlaceWith(TreePacker(num_ops), lifetimes);
}

struct Peak {
  int64_t bytes = 0;
  size_t at = 0;
};

/// Returns the most bytes alive at once, which no placement undercuts, and the op at which they are.
auto PeakOf(const std::vector<Lifetime>& lifetimes) -> Peak {
  // By the number of an op.
  std::vector<int64_t> changes;
  for (const Lifetime& lifetime : lifetimes) {
    changes.resize(std::max(changes.size(), lifetime.end + 2));
    changes[lifetime.begin] += lifetime.bytes;
    changes[lifetime.end + 1] -= lifetime.bytes;
  }
  int64_t now = 0;
  Peak peak;
  for (size_t at = 0; at < changes.size(); ++at) {
    now += changes[at];
    if (now > peak.bytes) {
      peak = {now, at};
    }
  }
  return peak;
}

/// Puts `lifetimes` of one arena and section into the best order found. Deterministic: ties keep the order of the
/// section.
auto BestPlacement(std::vector<Lifetime>& lifetimes) -> Offsets {
  // Pairs of buffers compared over all attempts: bounds the time that a large plan takes.
  constexpr size_t MostCompared = 20'000'000;
  const Peak peak = PeakOf(lifetimes);
  const auto is_good = [&](const Offsets& placement) {
    return static_cast<double>(placement.high_water) <= 1.002 * static_cast<double>(peak.bytes);
  };
  std::stable_sort(lifetimes.begin(), lifetimes.end(),
                   [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; });
  const std::vector<Lifetime> largest_first = lifetimes;
  const auto peak_first = [&](auto&& before) {
    std::vector<Lifetime> order = largest_first;
    const auto rest = std::stable_partition(order.begin(), order.end(), [&](const Lifetime& lifetime) {
      return lifetime.begin <= peak.at && peak.at <= lifetime.end;
    });
    std::stable_sort(order.begin(), rest, before);
    return order;
  };
  size_t num_attempts = MostCompared / std::max<size_t>(1, lifetimes.size() * lifetimes.size());
  Offsets best;
  const auto attempt = [&](const std::vector<Lifetime>& order) {
    Offsets next = PlaceInOrder(order);
    if (best.offsets.empty() || next.high_water < best.high_water) {
      best = next;
      lifetimes = order;
    }
    return next;
  };
  attempt(peak_first([](const Lifetime& a, const Lifetime& b) { return a.end > b.end; }));
  if (!is_good(best)) {
    attempt(largest_first);
  }
  if (!is_good(best)) {
    attempt(peak_first([](const Lifetime& a, const Lifetime& b) { return a.begin < b.begin; }));
  }
  std::vector<Lifetime> order = num_attempts > 0 && !is_good(best) ? lifetimes : std::vector<Lifetime>();
  for (size_t highest = best.highest; num_attempts > 0 && !is_good(best); --num_attempts) {
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(highest),
                order.begin() + static_cast<std::ptrdiff_t>(highest) + 1);
    highest = attempt(order).highest;
  }
  return best;
}

}  // namespace

auto Allocate(Plan plan, PassContext&) -> ErrorOr<Plan> {
  const int64_t red_zone = RedZoneOf(plan);
  const int64_t alignment = FactsOf(plan.device).offset_alignment;
  CHECK(red_zone % alignment == 0, "red zones of {} bytes, offsets in multiples of {}", red_zone, alignment);
  for (Buffer& buffer : plan.buffers) {
    if (IsPersistent(buffer.arena)) {
      int64_t& end = plan.arena_bytes[static_cast<size_t>(buffer.arena)];
      buffer.offset = RoundUp(end, alignment) + red_zone;
      end = buffer.offset + buffer.bytes.value + red_zone;
    }
  }
  for (const Section& section : plan.sections) {
    std::array<std::vector<Lifetime>, NumArenas> by_arena;
    for (Lifetime& lifetime : LifetimesOf(plan, section)) {
      lifetime.bytes = plan.buffers[lifetime.buffer].bytes.value + 2 * red_zone;
      lifetime.taken = RoundUp(lifetime.bytes, alignment);
      by_arena[static_cast<size_t>(plan.buffers[lifetime.buffer].arena)].push_back(lifetime);
    }
    for (size_t arena = 0; arena < NumArenas; ++arena) {
      std::vector<Lifetime>& lifetimes = by_arena[arena];
      const Offsets placement = BestPlacement(lifetimes);
      for (size_t i = 0; i < lifetimes.size(); ++i) {
        plan.buffers[lifetimes[i].buffer].offset = placement.offsets[i] + red_zone;
      }
      plan.arena_bytes[arena] = std::max(plan.arena_bytes[arena], placement.high_water);
    }
  }
  return plan;
}

}  // namespace shardc
