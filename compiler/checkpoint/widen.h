// Elements of files as numbers in f32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/plan/types.h"

namespace shardc {

/// Widens `count` elements to f32, which is exact. Requires: a type of seeds.
auto Widen(const std::byte* from, DType dtype, int64_t count, float* out) -> void;

}  // namespace shardc
