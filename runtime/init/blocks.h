// What drawing costs, done for many elements at once so that the compiler makes vectors of it. The bits are those of
// InitUniform and NormalQuantile, whatever the processor: the same operations in the same order, none fused.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/init/philox.h"

namespace shardc {

constexpr int64_t InitBlock = 256;
using BlockOfDoubles = std::array<double, InitBlock>;

/// u[i] = InitUniform(key, first + i).
auto UniformBlock(PhiloxKey key, int64_t first, BlockOfDoubles& u) -> void;

/// z[i] = NormalQuantile(p[i]). Requires: 0 < p[i] < 1; z is not p.
auto NormalQuantileBlock(const BlockOfDoubles& p, BlockOfDoubles& z) -> void;

}  // namespace shardc
