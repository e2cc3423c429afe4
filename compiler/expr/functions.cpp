#include "compiler/expr/functions.h"

#include <cmath>
#include <utility>

namespace shardc::expr_functions {

auto Min(Arguments arguments) -> std::optional<double> {
  return arguments[1] < arguments[0] ? arguments[1] : arguments[0];
}

auto Max(Arguments arguments) -> std::optional<double> {
  return arguments[0] < arguments[1] ? arguments[1] : arguments[0];
}

auto Abs(Arguments arguments) -> std::optional<double> { return std::abs(arguments[0]); }

auto Floor(Arguments arguments) -> std::optional<double> { return std::floor(arguments[0]); }

auto Ceil(Arguments arguments) -> std::optional<double> { return std::ceil(arguments[0]); }

auto Sqrt(Arguments arguments) -> std::optional<double> {
  return arguments[0] >= 0 ? std::optional(std::sqrt(arguments[0])) : std::nullopt;
}

auto Pow(Arguments arguments) -> std::optional<double> {
  const auto [x, y] = std::pair(arguments[0], arguments[1]);
  const bool has_value = x > 0 || (x == 0 ? y >= 0 : y == std::trunc(y));
  return has_value ? std::optional(std::pow(x, y)) : std::nullopt;
}

auto Exp(Arguments arguments) -> std::optional<double> { return std::exp(arguments[0]); }

auto Log(Arguments arguments) -> std::optional<double> {
  return arguments[0] > 0 ? std::optional(std::log(arguments[0])) : std::nullopt;
}

auto Sin(Arguments arguments) -> std::optional<double> { return std::sin(arguments[0]); }

auto Cos(Arguments arguments) -> std::optional<double> { return std::cos(arguments[0]); }

auto Tanh(Arguments arguments) -> std::optional<double> { return std::tanh(arguments[0]); }

auto Erf(Arguments arguments) -> std::optional<double> { return std::erf(arguments[0]); }

/// Halley's steps triple the number of right digits; Winitzki's start has two. Near 1 the distance to 1 is exact in a
/// double, and so is what erfc is compared with.
auto ErfInv(Arguments arguments) -> std::optional<double> {
  const double x = std::abs(arguments[0]);
  if (x >= 1) {
    return std::nullopt;
  }
  constexpr double A = 0.147;
  const double log = std::log1p(-x * x);
  const double b = 2 / (M_PI * A) + log / 2;
  double y = std::sqrt(std::sqrt(b * b - log / A) - b);
  for (int i = 0; i < 4; ++i) {
    const double error = x < 0.5 ? std::erf(y) - x : (1 - x) - std::erfc(y);
    const double newton = error / (M_2_SQRTPI * std::exp(-y * y));
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, arguments[0]);
}

auto Normal(Arguments arguments) -> bool { return arguments[1] >= 0; }

auto TruncNormal(Arguments arguments) -> bool { return arguments[1] > 0 && arguments[2] < arguments[3]; }

auto Uniform(Arguments arguments) -> bool { return arguments[0] < arguments[1]; }

}  // namespace shardc::expr_functions
