// Elements that are not finite, of any element type. Integers always are.
#pragma once

#include <optional>

#include "runtime/kernels/kernel.h"

namespace shardc {

struct NonFinite {
  /// Counted from the first element that was looked at.
  int64_t element = 0;
  double value = 0;
};

/// The first of `count` elements at `data` that is not finite.
auto FindNonFinite(const Plan& plan, DType dtype, const std::byte* data, int64_t count) -> std::optional<NonFinite>;

/// Minus infinity counts as finite.
auto FindNonFiniteButMinusInfinity(DType dtype, const std::byte* data, int64_t count) -> std::optional<NonFinite>;

}  // namespace shardc
