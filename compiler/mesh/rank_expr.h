// RankExpr: the only form in which anything in a plan may differ by rank, repeat index or step. Affine, with an
// optional clamp: so every rank runs the same ops in the same order, whatever is in the batch, by type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/mesh/mesh.h"

namespace shardc {

/// Where and when an expression is evaluated.
struct RankPoint {
  Coordinates coordinates{};
  int64_t repeat = 0;
  int64_t step = 0;
};

/// value = clamp(base + sum of axis[i] * coordinate[i] + repeat * index + step * step number); with `equals` set, the
/// result is 1 where that value equals it and 0 elsewhere. Printed as "64+128*dp+3*repeat", "clamp(..., 0, 9)",
/// "equal(..., 2)"; a constant prints as its number.
struct RankExpr {
  int64_t base = 0;
  std::array<int64_t, NumAxes> axis{};
  int64_t repeat = 0;
  int64_t step = 0;
  std::optional<Interval> clamp;
  std::optional<int64_t> equals;

  static auto Constant(int64_t value) -> RankExpr {
    return RankExpr{.base = value, .axis = {}, .repeat = 0, .step = 0, .clamp = {}, .equals = {}};
  }
  auto is_constant() const -> bool {
    int64_t factors = repeat | step;
    for (const int64_t factor : axis) {
      factors |= factor;
    }
    return factors == 0 && !clamp && !equals;
  }
  auto Evaluate(const RankPoint& point) const -> int64_t;
  /// The same expression with `delta` added. Requires: no clamp, no equality.
  auto Plus(int64_t delta) const -> RankExpr;
  friend auto operator==(const RankExpr&, const RankExpr&) -> bool = default;
};

auto ToText(const RankExpr& expr) -> std::string;
auto RankExprFromText(std::string_view text) -> ErrorOr<RankExpr>;

}  // namespace shardc
