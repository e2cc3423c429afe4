// Products of sizes that a file tells.
#pragma once

#include <cstdint>

#include "compiler/base/error_or.h"

namespace shardc {

/// a * b, of numbers that are not negative. Errors: ExitCode::Checkpoint: the product is more than 2^63 - 1.
inline auto CheckedMultiply(int64_t a, int64_t b) -> ErrorOr<int64_t> {
  int64_t result = 0;
  FAIL_IF(__builtin_mul_overflow(a, b, &result), ExitCode::Checkpoint, "{} times {} is more than 2^63 - 1", a, b);
  return result;
}

}  // namespace shardc
