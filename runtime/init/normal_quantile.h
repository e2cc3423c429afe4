// The standard normal distribution's quantile in parts, for one element or a loop over many: the middle, and a tail.
//
// Source: Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace shardc {

/// c[0] + c[1] x + c[2] x^2 + ...
template <size_t N>
[[gnu::always_inline]] inline auto Polynomial(const double (&c)[N], double x) -> double {
  double sum = c[N - 1];
  for (size_t i = N - 1; i-- > 0;) {
    sum = sum * x + c[i];
  }
  return sum;
}

constexpr double CentralWidth = 0.425;
/// `q` is the probability less one half.
[[gnu::always_inline]] inline auto IsCentral(double q) -> bool { return std::abs(q) <= CentralWidth; }

/// Requires: IsCentral(q), or the result means nothing.
[[gnu::always_inline]] inline auto CentralQuantile(double q) -> double {
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
  const double r = 0.180625 - q * q;
  return q * Polynomial(A, r) / Polynomial(B, r);
}

/// The natural logarithm, by additions, multiplications and one division, the same on every machine. With x = 2^k m
/// and m about 1, it is k log 2 + 2 atanh((m - 1) / (m + 1)), the series as far as a double tells. Off by 2 ulp at
/// most where x <= 1/2. Requires: x > 0, and not subnormal.
[[gnu::always_inline]] inline auto LogOf(double x) -> double {
  constexpr int64_t RootOfHalf = 0x3FE6A09E667F3BCD;
  // The first with so many zeros behind it that its product with an exponent is exact.
  constexpr double Log2High = 0x1.62e42fefa38p-1;
  constexpr double Log2Low = 0x1.ef35793c7673p-45;
  static constexpr double Series[] = {2.0,        2.0 / 3.0,  2.0 / 5.0,  2.0 / 7.0,  2.0 / 9.0, 2.0 / 11.0,
                                      2.0 / 13.0, 2.0 / 15.0, 2.0 / 17.0, 2.0 / 19.0, 2.0 / 21.0};
  const auto bits = std::bit_cast<int64_t>(x);
  const int64_t exponent = (bits - RootOfHalf) >> 52;
  const auto m = std::bit_cast<double>(bits - (exponent << 52));
  const double s = (m - 1) / (m + 1);
  const auto k = static_cast<double>(exponent);
  return k * Log2High + (k * Log2Low + s * Polynomial(Series, s * s));
}

/// Where a tail's first formula ends: e^-25.
constexpr double FarTail = 1.3887943864964020595e-11;

/// The quantile of 1 - p. Requires: FarTail <= p < 0.075, or the result means nothing.
[[gnu::always_inline]] inline auto NearTailQuantile(double p) -> double {
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
  const double r = std::sqrt(-LogOf(p)) - 1.6;
  return Polynomial(C, r) / Polynomial(D, r);
}

/// The quantile of 1 - p. Requires: 0 < p < 0.075.
inline auto TailQuantile(double p) -> double {
  static constexpr double E[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                 2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                 2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double F[] = {1.0,
                                 5.99832206555887937690e-1,
                                 1.36929880922735805310e-1,
                                 1.48753612908506148525e-2,
                                 7.86869131145613259100e-4,
                                 1.84631831751005468180e-5,
                                 1.42151175831644588870e-7,
                                 2.04426310338993978564e-15};
  if (p >= FarTail) {
    return NearTailQuantile(p);
  }
  const double log = p >= std::numeric_limits<double>::min() ? LogOf(p) : LogOf(p * 0x1p54) + LogOf(0x1p-54);
  const double r = std::sqrt(-log) - 5;
  return Polynomial(E, r) / Polynomial(F, r);
}

}  // namespace shardc
