// Checks of token ids before they become addresses. The reader has checked the files; this keeps a fault there from
// reading or writing outside a matrix.
#pragma once

#include <algorithm>

#include "compiler/base/error_or.h"

namespace shardc {

/// An error that names the first id outside [least, vocabulary).
inline auto CheckTokens(const int32_t* ids, int64_t count, int32_t least, int64_t vocabulary) -> Status {
  int32_t smallest = least;
  int32_t greatest = least;
  for (int64_t i = 0; i < count; ++i) {
    smallest = std::min(smallest, ids[i]);
    greatest = std::max(greatest, ids[i]);
  }
  if (smallest >= least && greatest < vocabulary) [[likely]] {
    return Success{};
  }
  const int32_t* const bad = std::find_if(ids, ids + count, [&](int32_t id) { return id < least || id >= vocabulary; });
  return Fail(ExitCode::InternalFault, "token id {} at position {} is outside the vocabulary of {}", *bad, bad - ids,
              vocabulary);
}

}  // namespace shardc
