#include "compiler/verify/defined_bytes.h"

#include <algorithm>

namespace shardc {

auto DefinedBytes::Meeting(const Interval& bytes) const -> std::pair<size_t, size_t> {
  const auto first = std::partition_point(ranges_.begin(), ranges_.end(),
                                          [&](const DefinedRange& range) { return range.bytes.end <= bytes.begin; });
  const auto last = std::partition_point(first, ranges_.end(),
                                         [&](const DefinedRange& range) { return range.bytes.begin < bytes.end; });
  return {static_cast<size_t>(first - ranges_.begin()), static_cast<size_t>(last - ranges_.begin())};
}

auto DefinedBytes::FirstGap(const Interval& bytes, std::pair<size_t, size_t> meeting) const -> std::optional<Interval> {
  const auto [first, last] = meeting;
  int64_t reached = bytes.begin;
  for (size_t i = first; i < last; ++i) {
    if (ranges_[i].bytes.begin > reached) {
      return Interval{reached, ranges_[i].bytes.begin};
    }
    reached = ranges_[i].bytes.end;
  }
  return reached < bytes.end ? std::optional(Interval{reached, bytes.end}) : std::nullopt;
}

auto DefinedBytes::FirstHeld(const Interval& bytes) const -> std::optional<Interval> {
  const auto [first, last] = Meeting(bytes);
  return first < last ? std::optional(Intersect(ranges_[first].bytes, bytes)) : std::nullopt;
}

auto DefinedBytes::Erase(const Interval& bytes) -> size_t {
  const auto [first, last] = Meeting(bytes);
  if (first == last) {
    return first;
  }
  DefinedRange head = ranges_[first];
  DefinedRange tail = ranges_[last - 1];
  head.bytes.end = bytes.begin;
  tail.bytes.begin = bytes.end;
  auto at = ranges_.erase(ranges_.begin() + static_cast<std::ptrdiff_t>(first),
                          ranges_.begin() + static_cast<std::ptrdiff_t>(last));
  if (!tail.bytes.empty()) {
    at = ranges_.insert(at, tail);
  }
  if (head.bytes.empty()) {
    return first;
  }
  ranges_.insert(at, head);
  return first + 1;
}

auto DefinedBytes::Write(const DefinedRange& range) -> void {
  const size_t at = Erase(range.bytes);
  DefinedRange joined = range;
  const auto begin = ranges_.begin();
  auto first = begin + static_cast<std::ptrdiff_t>(at);
  auto last = first;
  if (range.killed_at == 0) {
    if (at > 0 && (first - 1)->killed_at == 0 && (first - 1)->bytes.end == range.bytes.begin) {
      --first;
      joined.bytes.begin = first->bytes.begin;
    }
    if (last != ranges_.end() && last->killed_at == 0 && last->bytes.begin == range.bytes.end) {
      joined.bytes.end = last->bytes.end;
      ++last;
    }
  }
  ranges_.insert(ranges_.erase(first, last), joined);
}

auto DefinedBytes::HeldRanges() const -> std::vector<Interval> {
  std::vector<Interval> ranges;
  for (const DefinedRange& range : ranges_) {
    if (!ranges.empty() && ranges.back().end == range.bytes.begin) {
      ranges.back().end = range.bytes.end;
    } else {
      ranges.push_back(range.bytes);
    }
  }
  return ranges;
}

}  // namespace shardc
