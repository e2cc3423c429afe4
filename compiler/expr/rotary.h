// The angles of a rotary embedding, from a frequency: a formula of the pair, index(0), with everything known put in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/expr.h"

namespace shardc {

/// Half of the widest head that a recipe may have.
constexpr int64_t MostRotaryPairs = 1 << 19;

/// Reads a frequency of a plan's text, in which only the pair is left to look up; returns nothing for another text.
auto ReadReducedFrequency(std::string_view text) -> std::optional<Expr>;

/// Returns why the pairs 0 to num_pairs - 1 have no cosines and sines at the positions 0 to num_positions - 1, for the
/// first pair without: "of pair 3 is -0.5; a frequency is 0 or more". Empty if all have them. Requires: a reduced
/// frequency; 0 < num_pairs <= MostRotaryPairs.
auto RotaryFault(const Expr& frequency, int64_t num_pairs, int64_t num_positions) -> std::string;

/// Units: radians a position, one of each pair. Requires: as above; no fault.
auto RotaryFrequencies(const Expr& frequency, int64_t num_pairs) -> std::vector<double>;

/// Writes the cosines of one position's angles into row[0, D/2), and their sines after them. Angles are formed in f64:
/// at position 100,000 an f32 angle has an error of 0.004. The bits are the same on every machine (math.h). Requires: a
/// machine with FMA, as kernels do.
auto WriteRotaryRow(std::span<const double> frequencies, int64_t position, float* row) -> void;

}  // namespace shardc
