// Which bytes of one buffer hold something, as sorted ranges without overlap, and which of them were last written over
// another value.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/mesh/mesh.h"

namespace shardc {

struct DefinedRange {
  Interval bytes;
  /// When an in-place op last wrote here, over which bytes, and which op. 0 where none did.
  int64_t killed_at = 0;
  Interval killed;
  size_t killed_by = 0;
  /// Time of the last plain (not in-place) write of `killed`; names used before it are void.
  int64_t fresh_at = 0;
};

class DefinedBytes {
 public:
  auto ranges() const -> const std::vector<DefinedRange>& { return ranges_; }
  auto empty() const -> bool { return ranges_.empty(); }
  auto Clear() -> void { ranges_.clear(); }
  /// Returns the first range of `bytes` that holds nothing. `meeting`: Meeting(bytes).
  auto FirstGap(const Interval& bytes, std::pair<size_t, size_t> meeting) const -> std::optional<Interval>;
  auto FirstGap(const Interval& bytes) const -> std::optional<Interval> { return FirstGap(bytes, Meeting(bytes)); }
  /// Returns the first range of `bytes` that holds something.
  auto FirstHeld(const Interval& bytes) const -> std::optional<Interval>;
  /// Returns the ranges that meet `bytes`, as [first, last) of ranges().
  auto Meeting(const Interval& bytes) const -> std::pair<size_t, size_t>;
  /// Replaces what is there. Neighbours without a kill become one.
  auto Write(const DefinedRange& range) -> void;
  /// Returns the bytes that hold something; neighbouring ranges are joined.
  auto HeldRanges() const -> std::vector<Interval>;

 private:
  /// Returns how many ranges lie before `bytes` then.
  auto Erase(const Interval& bytes) -> size_t;

  std::vector<DefinedRange> ranges_;
};

}  // namespace shardc
