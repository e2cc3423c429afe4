// The standard normal law, written over numbers of any type with the operations of numeric.h.
#pragma once

#include "compiler/expr/numeric.h"

namespace shardc {

/// The standard normal quantile of (1 + x) / 2, sqrt(2) erfinv(x), of floats: x P(w) with w = -log2(1 - x^2), one
/// polynomial up to w = 7.25, another beyond it, for one x in 300. Odd in x. On the lattice +-(m + 1/2) 2^-23, m below
/// 2^23, off by 3.5 ulp at most, and increasing. 43 operations, 19 more in the tail.
/// Requires: |x| <= 1 - 2^-24.
/// Source: the form is that of Giles, Approximating the erfinv function, GPU Computing Gems Jade Edition (2011); the
/// polynomials are ours, minimax in relative error.
template <class F>
auto StandardNormal(F x) -> F {
  // Of v = m - 3/2, where 1 - x^2 = 2^k m, m in [1, 2): -log2 m - Center, falling by 1.
  static constexpr float Log[] = {-0x1.0ae01p+1f, -0x1.ec706cp-1f, 0x1.4854fep-2f, -0x1.23f17ep-3f,
                                  0x1.20e686p-4f, -0x1.315652p-5f, 0x1.9e90d8p-6f, -0x1.f25e6cp-7f};
  static constexpr float Middle[] = {0x1.9bb83p+0f,    0x1.f23262p-3f,  0x1.615842p-9f,
                                     -0x1.2357dap-10f, 0x1.2af92cp-15f, 0x1.160714p-17f,
                                     -0x1.abe5dep-21f, -0x1.962c7p-28f, 0x1.60dc2ep-29f};
  static constexpr float Tail[] = {0x1.0adc4p+2f,    0x1.4361a6p-3f,  -0x1.610b86p-9f, 0x1.66c514p-14f,
                                   -0x1.815a08p-19f, 0x1.143844p-24f, 0x1.69f84cp-29f, -0x1.619dfap-31f,
                                   0x1.0300ep-34f,   -0x1.29ad6cp-39f};
  // The polynomials' w is counted from these.
  constexpr float Center = 1.5f;
  constexpr float TailCenter = 14.0f;
  constexpr float TailBegin = 7.25f;
  constexpr int32_t MantissaBits = 0x007fffff;
  constexpr int32_t One = 0x3f800000;
  const F a = Abs(x);
  const auto bits = BitsOf((1.0f - a) * (1.0f + a));
  const F minus_k = ToNumber(127 - (bits >> 23));
  const F v = FromBits((bits & MantissaBits) | One) - 1.5f;
  const F w = Polynomial(Log, v) + minus_k;
  return x * SelectSeldom(
                 w >= TailBegin - Center, [&] { return Polynomial(Tail, F(w - (TailCenter - Center))); },
                 Polynomial(Middle, w));
}

}  // namespace shardc
