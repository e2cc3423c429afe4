#include "compiler/expr/functions.h"

#include <cmath>

namespace shardc::expr_functions {

auto Min(Arguments arguments) -> std::optional<double> {
  return arguments[1] < arguments[0] ? arguments[1] : arguments[0];
}

auto Max(Arguments arguments) -> std::optional<double> {
  return arguments[0] < arguments[1] ? arguments[1] : arguments[0];
}

auto Sqrt(Arguments arguments) -> std::optional<double> {
  return arguments[0] >= 0 ? std::optional(std::sqrt(arguments[0])) : std::nullopt;
}

auto Exp(Arguments arguments) -> std::optional<double> { return std::exp(arguments[0]); }

auto Log(Arguments arguments) -> std::optional<double> {
  return arguments[0] > 0 ? std::optional(std::log(arguments[0])) : std::nullopt;
}

auto Cos(Arguments arguments) -> std::optional<double> { return std::cos(arguments[0]); }

auto Normal(Arguments arguments) -> bool { return arguments[1] >= 0; }

auto TruncNormal(Arguments arguments) -> bool { return arguments[1] > 0 && arguments[2] < arguments[3]; }

auto Uniform(Arguments arguments) -> bool { return arguments[0] < arguments[1]; }

}  // namespace shardc::expr_functions
