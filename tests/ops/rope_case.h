// Rotations of the tests of rope, rope_pair and rope_table_at, in f64.
#pragma once

#include <cmath>
#include <vector>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

/// Returns the formula of the frequencies that Rotated takes.
inline auto RopeFrequencyOf(int64_t head_dim) -> std::string {
  return fmt::format("10000 ^ (-2 * index(0) / {})", head_dim);
}

/// Returns the table that Rotated takes its angles from.
inline auto RopeTableOf(KernelFixture& fixture, int64_t sequence, int64_t head_dim) -> ValueId {
  const ValueId table = fixture.Add(DType::F32, {sequence, 2, head_dim / 2});
  fixture.Run(op::RopeTable{.table = table, .frequency = RopeFrequencyOf(head_dim)});
  return table;
}

/// Returns positions of `tokens` tokens: they repeat, fall, and go far past the tokens' number.
inline auto PositionsOfTokens(int64_t tokens) -> std::vector<int32_t> {
  std::vector<int32_t> positions;
  for (int64_t i = 0; i < tokens; ++i) {
    positions.push_back(static_cast<int32_t>(i / 2 % 7 == 3 ? 1'000'003 + i : i / 2 * 5 % 11));
  }
  return positions;
}

/// Rotates by sign times the angles. `row`: elements of a position. `positions`: those of the rows; empty if they are
/// the numbers of the rows.
inline auto Rotated(const std::vector<double>& x, int64_t row, int64_t head_dim, double sign,
                    const std::vector<int32_t>& positions = {}) -> std::vector<double> {
  const int64_t half = head_dim / 2;
  std::vector<double> y(x.size());
  for (size_t at = 0; at < x.size(); ++at) {
    const int64_t within = static_cast<int64_t>(at) % head_dim;
    const int64_t of_row = static_cast<int64_t>(at) / row;
    const int64_t position = positions.empty() ? of_row : positions[static_cast<size_t>(of_row)];
    const double exponent = 2.0 * static_cast<double>(within % half) / static_cast<double>(head_dim);
    const double angle = sign * static_cast<double>(position) / std::pow(10000.0, exponent);
    const auto distance = static_cast<size_t>(half);
    const double other = within < half ? -x[at + distance] : x[at - distance];
    y[at] = x[at] * std::cos(angle) + other * std::sin(angle);
  }
  return y;
}

}  // namespace shardc
