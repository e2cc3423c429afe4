// The exponential in a form that the compiler vectorises: libm's does not. Its bits depend on nothing but the operand.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace shardc::SHARDC_LOOPS {

/// e^x within 2 units in the last place; 0 below -87, infinity above 88.37, NaN for NaN.
/// Source: Cephes expf: x = n ln 2 + r, |r| <= ln 2 / 2, and a polynomial of degree 5 for e^r = 1 + r + r^2 p(r).
[[gnu::always_inline]] inline auto Exp(float x) -> float {
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits of the float.
  constexpr float Round = 12582912.0F;
  const float shifted = x * 1.44269504088896341F + Round;
  const float n = shifted - Round;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float e_r = p * (r * r) + r + 1.0F;
  const float two_n = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127U) << 23U);
  const float result = e_r * two_n;
  const float low = x < -87.0F ? 0.0F : result;
  return x > 88.37F ? std::numeric_limits<float>::infinity() : low;
}

/// 1 / (1 + e^-x).
[[gnu::always_inline]] inline auto Sigmoid(float x) -> float { return 1.0F / (1.0F + Exp(-x)); }

}  // namespace shardc::SHARDC_LOOPS
