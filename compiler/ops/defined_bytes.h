// Which bytes of one buffer hold something, as sorted pieces without overlap, and which of them were last written over
// another value.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "compiler/mesh/mesh.h"

namespace shardc {

struct DefinedPiece {
  Interval bytes;
  /// When an in-place op last wrote here, over which bytes, and which op. 0 where none did.
  int64_t killed_at = 0;
  Interval killed;
  size_t killed_by = 0;
  /// When the bytes `killed` were last written as nothing but themselves: names in use before mean nothing since.
  int64_t fresh_at = 0;
};

class DefinedBytes {
 public:
  auto pieces() const -> const std::vector<DefinedPiece>& { return pieces_; }
  auto empty() const -> bool { return pieces_.empty(); }
  auto Clear() -> void { pieces_.clear(); }
  /// The first stretch of `bytes` that holds nothing.
  auto FirstGap(const Interval& bytes) const -> std::optional<Interval>;
  /// The first stretch of `bytes` that holds something.
  auto FirstHeld(const Interval& bytes) const -> std::optional<Interval>;
  /// Pieces that meet `bytes`: [first, last) of pieces().
  auto Meeting(const Interval& bytes) const -> std::pair<size_t, size_t>;
  auto Erase(const Interval& bytes) -> void;
  /// Replaces what is there. Neighbours without a kill grow together.
  auto Write(const DefinedPiece& piece) -> void;
  /// The held bytes, neighbours joined.
  auto Ranges() const -> std::vector<Interval>;

 private:
  std::vector<DefinedPiece> pieces_;
};

}  // namespace shardc
