// Initial values: element i of a parameter depends on (seed, parameter name, i) and nothing else, so any mesh makes the
// same bits and a rank draws only what it owns. The streams are described in schemas/random.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "compiler/expr/expr.h"
#include "compiler/mesh/mesh.h"
#include "runtime/init/philox.h"

namespace shardc {

/// The generator's key of one parameter: XXH3-64 of its name, seeded.
auto InitKey(uint64_t seed, std::string_view name) -> PhiloxKey;

/// Uniform in (0, 1): the midpoints of 2^53 equal cells, never 0 or 1.
auto InitUniform(PhiloxKey key, int64_t element) -> double;

/// Quantile of the standard normal distribution. Requires: 0 < p < 1.
/// Source: Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988); relative error about 1e-16.
auto NormalQuantile(double p) -> double;

/// Writes elements [begin, end) of a parameter to out[0 ... end - begin).
/// Requires: as many arguments as the kind has (compiler/expr checked them: std >= 0, a < b).
auto FillRule(const Distribution& rule, uint64_t seed, std::string_view name, Interval elements, float* out) -> void;

}  // namespace shardc
