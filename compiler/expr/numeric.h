// The operations that the functions of the expression language are made of, for numbers themselves. A function written
// with them as a template over its number (compiler/expr/math.h, random.h) works on a double or float here, and makes
// code for a vector of them in compiler/expr/jit, whose values have the same operations: one text, the same bits. All
// are exact or rounded once, as IEEE 754 has it, and nothing is fused but by Fma.
//
// Besides these, numbers have + - * / and unary minus, with literals of their own type; whole numbers (IntOf) + - * & |
// ^ and << >> by a constant, >> keeping the sign; both have < <= > >=.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace shardc {

template <class Number>
struct IntOfNumber;
template <>
struct IntOfNumber<double> {
  using Type = int64_t;
};
template <>
struct IntOfNumber<float> {
  using Type = int32_t;
};

/// The type of a comparison of numbers.
template <class Number>
struct MaskOfNumber {
  using Type = bool;
};
template <class Number>
using MaskOf = typename MaskOfNumber<Number>::Type;
/// The whole numbers as wide as a number.
template <class Number>
using IntOf = typename IntOfNumber<Number>::Type;

inline auto BitsOf(double x) -> int64_t { return std::bit_cast<int64_t>(x); }
inline auto BitsOf(float x) -> int32_t { return std::bit_cast<int32_t>(x); }
inline auto FromBits(int64_t bits) -> double { return std::bit_cast<double>(bits); }
inline auto FromBits(int32_t bits) -> float { return std::bit_cast<float>(bits); }

/// Requires: the number is whole, and below 2^53 (2^24 of floats); of ToInteger, truncated towards 0.
inline auto ToNumber(int64_t i) -> double { return static_cast<double>(i); }
inline auto ToNumber(int32_t i) -> float { return static_cast<float>(i); }
inline auto ToInteger(double x) -> int64_t { return static_cast<int64_t>(x); }
inline auto ToInteger(float x) -> int32_t { return static_cast<int32_t>(x); }

inline auto ToDouble(float x) -> double { return x; }
inline auto ToFloat(double x) -> float { return static_cast<float>(x); }

/// Returns `value` as a number like `x`.
inline auto Like(double, double value) -> double { return value; }
inline auto Like(float, double value) -> float { return static_cast<float>(value); }

/// Returns the nearest float above x. Requires: finite.
inline auto NextFloat(float x) -> float {
  return x >= 0 ? FromBits((BitsOf(x) & 0x7FFFFFFF) + 1) : FromBits(BitsOf(x) - 1);
}

inline auto IsFinite(double x) -> bool { return std::isfinite(x); }
inline auto IsFinite(float x) -> bool { return std::isfinite(x); }

inline auto Abs(double x) -> double { return std::abs(x); }
inline auto Abs(float x) -> float { return std::abs(x); }
inline auto Sqrt(double x) -> double { return std::sqrt(x); }
inline auto Sqrt(float x) -> float { return std::sqrt(x); }
inline auto Floor(double x) -> double { return std::floor(x); }
inline auto Ceil(double x) -> double { return std::ceil(x); }
inline auto Trunc(double x) -> double { return std::trunc(x); }
/// Rounds to the nearest whole number, halves to even.
inline auto Round(double x) -> double { return std::nearbyint(x); }
/// Computes a * b + c, rounded once.
inline auto Fma(double a, double b, double c) -> double { return std::fma(a, b, c); }

/// Returns a half of a number of 64 bits, as a number below 2^32.
constexpr auto LowHalf(uint64_t word) -> uint64_t { return word & 0xFFFFFFFF; }
constexpr auto HighHalf(uint64_t word) -> uint64_t { return word >> 32; }

inline auto Both(bool a, bool b) -> bool { return a && b; }
inline auto Either(bool a, bool b) -> bool { return a || b; }
inline auto Not(bool a) -> bool { return !a; }

/// Returns `yes` if the condition holds, else `no`; both are computed.
template <class Number>
auto Select(bool condition, Number yes, Number no) -> Number {
  return condition ? yes : no;
}

/// Returns `yes()` if the condition holds, else `no`. For what is dear and seldom needed: generated code jumps over it
/// if the condition holds for no element of a vector.
template <class Number, class Yes>
auto SelectSeldom(bool condition, const Yes& yes, Number no) -> Number {
  return condition ? yes() : no;
}

/// Rounds to the nearest number that 16 bits of exponent and mantissa as a float's hold, halves to even. Requires:
/// finite.
template <class Float>
auto RoundedToBfloat16(Float x) -> Float {
  const auto bits = BitsOf(x);
  return FromBits((bits + (((bits >> 16) & 1) + 0x7FFF)) & ~0xFFFF);
}

/// Computes c[0] + c[1] x + c[2] x^2 + ..., from the last on.
template <class Number, class Coefficient, size_t N>
auto Polynomial(const Coefficient (&c)[N], Number x) -> Number {
  Number sum = Like(x, c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) {
    sum = sum * x + c[i];
  }
  return sum;
}

/// Computes a Polynomial of doubles with a fused step each: rounded half as often.
template <class Number, size_t N>
auto FusedPolynomial(const double (&c)[N], Number x) -> Number {
  Number sum = Like(x, c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) {
    sum = Fma(sum, x, Like(x, c[i]));
  }
  return sum;
}

}  // namespace shardc
