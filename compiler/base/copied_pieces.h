// The pieces in which a host copies what a device holds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/base/error_or.h"

namespace shardc {

/// Most bytes that are copied at once between a device and the host, so that no copy needs host memory for a whole
/// slice.
constexpr int64_t PieceBytes = int64_t{64} << 20;

/// Calls function(begin, size) for one piece of `bytes` after another, until it fails. Pieces begin at multiples of
/// PieceBytes.
template <class Function>
auto ForEachPiece(int64_t bytes, const Function& function) -> Status {
  for (int64_t begin = 0; begin < bytes; begin += PieceBytes) {
    RETURN_IF_ERROR(function(begin, std::min(PieceBytes, bytes - begin)));
  }
  return Success{};
}

}  // namespace shardc
