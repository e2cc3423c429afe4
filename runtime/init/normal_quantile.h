// The middle of the standard normal distribution's quantile, for one element or a loop over many.
//
// Source: Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
#pragma once

#include <cmath>
#include <cstddef>

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

/// `q` is the probability less one half.
[[gnu::always_inline]] inline auto IsCentral(double q) -> bool { return std::abs(q) <= 0.425; }

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

}  // namespace shardc
