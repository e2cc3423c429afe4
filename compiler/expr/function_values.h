// What the functions of expressions compute, and where they have a value: over numbers or generated code (numeric.h).
#pragma once

#include <optional>
#include <span>

#include "compiler/base/check.h"
#include "compiler/expr/functions.h"
#include "compiler/expr/math.h"
#include "compiler/expr/numeric.h"

namespace shardc {

template <class Number>
struct Computed {
  Number value{};
  /// True outside the domain. A value that is not finite does not count either.
  MaskOf<Number> fault{};
};

inline auto ValueIn(const Computed<double>& computed) -> std::optional<double> {
  return computed.fault ? std::nullopt : std::optional(computed.value);
}

/// Returns a minus the largest whole multiple of b that leaves a number of the sign of b.
template <class Number>
auto ComputeRemainder(Number a, Number b) -> Computed<Number> {
  const auto is_in_domain = Abs(a / b) < MostQuotient;
  return {Remainder(Select(is_in_domain, a, Like(a, 0)), Select(is_in_domain, b, Like(b, 1))), Not(is_in_domain)};
}

template <class Number>
auto ComputeFunction(ExprFunction function, std::span<const Number> arguments) -> Computed<Number> {
  const Number x = arguments[0];
  // Of a function of one number that has no value everywhere; what is computed beside the domain is not looked at.
  const auto within = [&](auto domain, const auto& compute) -> Computed<Number> {
    return {compute(Select(domain, x, Like(x, 0.5))), Not(domain)};
  };
  switch (function) {
    case ExprFunction::Min: return {Select(arguments[1] < x, arguments[1], x)};
    case ExprFunction::Max: return {Select(x < arguments[1], arguments[1], x)};
    case ExprFunction::Abs: return {Abs(x)};
    case ExprFunction::Floor: return {Floor(x)};
    case ExprFunction::Ceil: return {Ceil(x)};
    case ExprFunction::Sqrt: return within(x >= 0.0, [](Number in) { return Sqrt(in); });
    case ExprFunction::Pow: {
      const Number y = arguments[1];
      const auto domain = Either(x > 0.0, Select(x == 0.0, y >= 0.0, y == Trunc(y)));
      return {Pow(Select(domain, x, Like(x, 1)), y), Not(domain)};
    }
    case ExprFunction::Exp: return {Exp(x)};
    case ExprFunction::Log: return within(x > 0.0, [](Number in) { return Log(in); });
    case ExprFunction::Sin: return within(Abs(x) <= MostAngle, [](Number in) { return Sin(in); });
    case ExprFunction::Cos: return within(Abs(x) <= MostAngle, [](Number in) { return Cos(in); });
    case ExprFunction::Tanh: return {Tanh(x)};
    case ExprFunction::Erf: return {Erf(x)};
    case ExprFunction::ErfInv: return within(Abs(x) < 1.0, [](Number in) { return ErfInv(in); });
  }
  CHECK(false, "function {}", static_cast<int>(function));
}

}  // namespace shardc
