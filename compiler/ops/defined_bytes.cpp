#include "compiler/ops/defined_bytes.h"

#include <algorithm>

namespace shardc {

auto DefinedBytes::Meeting(const Interval& bytes) const -> std::pair<size_t, size_t> {
  const auto first = std::partition_point(pieces_.begin(), pieces_.end(),
                                          [&](const DefinedPiece& piece) { return piece.bytes.end <= bytes.begin; });
  const auto last = std::partition_point(first, pieces_.end(),
                                         [&](const DefinedPiece& piece) { return piece.bytes.begin < bytes.end; });
  return {static_cast<size_t>(first - pieces_.begin()), static_cast<size_t>(last - pieces_.begin())};
}

auto DefinedBytes::FirstGap(const Interval& bytes) const -> std::optional<Interval> {
  const auto [first, last] = Meeting(bytes);
  int64_t reached = bytes.begin;
  for (size_t i = first; i < last; ++i) {
    if (pieces_[i].bytes.begin > reached) {
      return Interval{reached, pieces_[i].bytes.begin};
    }
    reached = pieces_[i].bytes.end;
  }
  return reached < bytes.end ? std::optional(Interval{reached, bytes.end}) : std::nullopt;
}

auto DefinedBytes::FirstHeld(const Interval& bytes) const -> std::optional<Interval> {
  const auto [first, last] = Meeting(bytes);
  return first < last ? std::optional(Intersect(pieces_[first].bytes, bytes)) : std::nullopt;
}

auto DefinedBytes::Erase(const Interval& bytes) -> void {
  const auto [first, last] = Meeting(bytes);
  if (first == last) {
    return;
  }
  DefinedPiece head = pieces_[first];
  DefinedPiece tail = pieces_[last - 1];
  head.bytes.end = bytes.begin;
  tail.bytes.begin = bytes.end;
  auto at = pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(first),
                          pieces_.begin() + static_cast<std::ptrdiff_t>(last));
  if (!tail.bytes.empty()) {
    at = pieces_.insert(at, tail);
  }
  if (!head.bytes.empty()) {
    pieces_.insert(at, head);
  }
}

auto DefinedBytes::Write(const DefinedPiece& piece) -> void {
  Erase(piece.bytes);
  const size_t at = Meeting(piece.bytes).first;
  DefinedPiece joined = piece;
  const auto begin = pieces_.begin();
  auto first = begin + static_cast<std::ptrdiff_t>(at);
  auto last = first;
  if (piece.killed_at == 0) {
    if (at > 0 && (first - 1)->killed_at == 0 && (first - 1)->bytes.end == piece.bytes.begin) {
      --first;
      joined.bytes.begin = first->bytes.begin;
    }
    if (last != pieces_.end() && last->killed_at == 0 && last->bytes.begin == piece.bytes.end) {
      joined.bytes.end = last->bytes.end;
      ++last;
    }
  }
  pieces_.insert(pieces_.erase(first, last), joined);
}

auto DefinedBytes::Ranges() const -> std::vector<Interval> {
  std::vector<Interval> ranges;
  for (const DefinedPiece& piece : pieces_) {
    if (!ranges.empty() && ranges.back().end == piece.bytes.begin) {
      ranges.back().end = piece.bytes.end;
    } else {
      ranges.push_back(piece.bytes);
    }
  }
  return ranges;
}

}  // namespace shardc
