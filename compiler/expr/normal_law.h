// The standard normal law, written over numbers of any type with the operations of numeric.h.
#pragma once

#include "compiler/expr/math.h"
#include "compiler/expr/numeric.h"

namespace shardc {

/// Computes the standard normal quantile of (1 + x) / 2, sqrt(2) erfinv(x), for floats: x P(w) with w = -log2(1 - x^2),
/// one polynomial up to w = 7.25, another beyond it, for one x in 300. Odd in x. On the lattice +-(m + 1/2) 2^-23, m
/// below 2^23, off by 3.5 ulp at most, and increasing. 43 operations, 19 more in the tail.
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
                 w >= TailBegin - Center, [&] { return Polynomial(Tail, w - (TailCenter - Center)); },
                 Polynomial(Middle, w));
}

/// Computes the probability of values up to x, off by 4 ulp at most, in the lower tail, too.
template <class F>
auto NormalCdf(F x) -> F {
  // Beyond it the lower tail is 0.
  constexpr double Most = 39;
  constexpr double RootOfHalf = 0x1.6a09e667f3bcdp-1;
  const F a = Abs(x);
  const F kept = Select(a > Most, Like(x, Most), a);
  const F square = kept * kept;
  const F density = ExpOfSum(-0.5 * square, -0.5 * Fma(kept, kept, -square));
  const F tail = density * (0.5 * ScaledErfc(kept * RootOfHalf));
  return Select(x > 0.0, 1.0 - tail, tail);
}

/// Computes the inverse of NormalCdf, off by 5 ulp at most. Requires: 0 < p < 1.
/// Source: Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
template <class F>
auto NormalQuantile(F p) -> F {
  static constexpr double A[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                 1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                 3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double B[] = {1.0,
                                 4.2313330701600911252e+1,
                                 6.8718700749205790830e+2,
                                 5.3941960214247511077e+3,
                                 2.1213794301586595867e+4,
                                 3.9307895800092710610e+4,
                                 2.8729085735721942674e+4,
                                 5.2264952788528545610e+3};
  static constexpr double C[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                 3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double D[] = {1.0,
                                 2.05319162663775882187e0,
                                 1.67638483018380384940e0,
                                 6.89767334985100004550e-1,
                                 1.48103976427480074590e-1,
                                 1.51986665636164571966e-2,
                                 5.47593808499534494600e-4,
                                 1.05075007164441684324e-9};
  static constexpr double E[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                 2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                 2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double G[] = {1.0,
                                 5.99832206555887937690e-1,
                                 1.36929880922735805310e-1,
                                 1.48753612908506148525e-2,
                                 7.86869131145613259100e-4,
                                 1.84631831751005468180e-5,
                                 1.42151175831644588870e-7,
                                 2.04426310338993978564e-15};
  constexpr double CentralWidth = 0.425;
  constexpr double FarTail = 5;
  const F q = p - 0.5;
  const F r = 0.180625 - q * q;
  const F central = q * FusedPolynomial(A, r) / FusedPolynomial(B, r);
  const auto tail = [&] {
    const F root = Sqrt(-Log(Select(q < 0.0, p, 1.0 - p)));
    const F s = root - 1.6;
    const auto far_tail = [&] {
      const F t = root - FarTail;
      return FusedPolynomial(E, t) / FusedPolynomial(G, t);
    };
    const F size = SelectSeldom(root > FarTail, far_tail, FusedPolynomial(C, s) / FusedPolynomial(D, s));
    return Select(q < 0.0, -size, size);
  };
  return SelectSeldom(Abs(q) > CentralWidth, tail, central);
}

}  // namespace shardc
