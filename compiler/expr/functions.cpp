#include "compiler/expr/functions.h"

#include <cmath>

#include "compiler/expr/math.h"

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
  const double x = arguments[0];
  const double y = arguments[1];
  const bool has_value = x > 0 || (x == 0 ? y >= 0 : y == std::trunc(y));
  return has_value ? std::optional(shardc::Pow(x, y)) : std::nullopt;
}

auto Exp(Arguments arguments) -> std::optional<double> { return shardc::Exp(arguments[0]); }

auto Log(Arguments arguments) -> std::optional<double> {
  return arguments[0] > 0 ? std::optional(shardc::Log(arguments[0])) : std::nullopt;
}

auto Sin(Arguments arguments) -> std::optional<double> {
  return std::abs(arguments[0]) <= MostAngle ? std::optional(shardc::Sin(arguments[0])) : std::nullopt;
}

auto Cos(Arguments arguments) -> std::optional<double> {
  return std::abs(arguments[0]) <= MostAngle ? std::optional(shardc::Cos(arguments[0])) : std::nullopt;
}

auto Tanh(Arguments arguments) -> std::optional<double> { return shardc::Tanh(arguments[0]); }

auto Erf(Arguments arguments) -> std::optional<double> { return shardc::Erf(arguments[0]); }

auto ErfInv(Arguments arguments) -> std::optional<double> {
  return std::abs(arguments[0]) < 1 ? std::optional(shardc::ErfInv(arguments[0])) : std::nullopt;
}

auto Normal(Arguments arguments) -> bool { return arguments[1] >= 0; }

auto TruncNormal(Arguments arguments) -> bool { return arguments[1] > 0 && arguments[2] < arguments[3]; }

auto Uniform(Arguments arguments) -> bool { return arguments[0] < arguments[1]; }

}  // namespace shardc::expr_functions
