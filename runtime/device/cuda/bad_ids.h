// The meaning of a word of BadIdsOf: a kernel that took ids cannot return an error.
#pragma once

#include <cstdint>

#include "compiler/base/error_or.h"

namespace shardc {

constexpr unsigned long long NoBadId = ~0ULL;

/// Returns the error of a word that is not NoBadId.
inline auto BadIdError(unsigned long long word, int64_t vocabulary) -> Error {
  return Fail(ExitCode::InternalFault, "token id {} at position {} is outside the vocabulary of {}",
              static_cast<int32_t>(word & 0xFFFF'FFFF), word >> 32, vocabulary);
}

}  // namespace shardc
