// Pieces of what is too much at once, such as what a host copies of what a device holds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/base/error_or.h"

namespace shardc {

/// Most bytes that are copied at once between a device and the host, so that no copy needs host memory for a whole
/// slice.
constexpr int64_t PieceBytes = int64_t{64} << 20;

/// Calls function(begin, size) for one piece of `count` after another, until it fails. Pieces begin at multiples of
/// `piece`.
template <class Function>
auto ForEachPiece(int64_t count, int64_t piece, const Function& function) -> Status {
  for (int64_t begin = 0; begin < count; begin += piece) {
    RETURN_IF_ERROR(function(begin, std::min(piece, count - begin)));
  }
  return Success{};
}

/// Calls function(begin, size) for pieces of PieceBytes.
template <class Function>
auto ForEachPiece(int64_t bytes, const Function& function) -> Status {
  return ForEachPiece(bytes, PieceBytes, function);
}

}  // namespace shardc
