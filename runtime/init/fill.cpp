#include "runtime/init/fill.h"

#include <algorithm>
#include <cmath>
#include <limits>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "compiler/base/check.h"

namespace shardc {

auto InitKey(uint64_t seed, std::string_view name) -> PhiloxKey {
  const uint64_t hash = XXH3_64bits_withSeed(name.data(), name.size(), seed);
  return {static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32)};
}

auto InitUniform(PhiloxKey key, int64_t element) -> double {
  const auto index = static_cast<uint64_t>(element);
  const PhiloxCounter words = Philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0}, key);
  const uint64_t bits = (uint64_t{words[1]} << 32 | words[0]) >> 11;
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

/// c[0] + c[1] x + c[2] x^2 + ...
template <size_t N>
static auto Polynomial(const double (&c)[N], double x) -> double {
  double sum = c[N - 1];
  for (size_t i = N - 1; i-- > 0;) {
    sum = sum * x + c[i];
  }
  return sum;
}

auto NormalQuantile(double p) -> double {
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
  static constexpr double F[] = {1.0,
                                 5.99832206555887937690e-1,
                                 1.36929880922735805310e-1,
                                 1.48753612908506148525e-2,
                                 7.86869131145613259100e-4,
                                 1.84631831751005468180e-5,
                                 1.42151175831644588870e-7,
                                 2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * Polynomial(A, r) / Polynomial(B, r);
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  const double tail =
      r <= 5 ? Polynomial(C, r - 1.6) / Polynomial(D, r - 1.6) : Polynomial(E, r - 5) / Polynomial(F, r - 5);
  return q < 0 ? -tail : tail;
}

static auto NormalCdf(double x) -> double { return 0.5 * std::erfc(-x * M_SQRT1_2); }

/// Rounds to float without leaving [low, high].
static auto RoundInto(double value, double low, double high) -> float {
  float rounded = static_cast<float>(std::clamp(value, low, high));
  if (rounded > high) {
    rounded = std::nextafter(rounded, -std::numeric_limits<float>::infinity());
  } else if (rounded < low) {
    rounded = std::nextafter(rounded, std::numeric_limits<float>::infinity());
  }
  return rounded;
}

auto FillRule(const Distribution& rule, uint64_t seed, std::string_view name, Interval elements, float* out) -> void {
  const PhiloxKey key = InitKey(seed, name);
  const auto argument = [&](size_t i) {
    CHECK(i < rule.arguments.size(), "{} of {}", ToText(rule), name);
    return rule.arguments[i];
  };
  switch (rule.kind) {
    case DistributionKind::Constant: {
      std::fill(out, out + elements.size(), static_cast<float>(argument(0)));
      return;
    }
    case DistributionKind::Normal: {
      const double mean = argument(0);
      const double std = argument(1);
      for (int64_t i = elements.begin; i < elements.end; ++i) {
        *out++ = static_cast<float>(mean + std * NormalQuantile(InitUniform(key, i)));
      }
      return;
    }
    case DistributionKind::TruncNormal: {
      const double mean = argument(0);
      const double std = argument(1);
      const double a = argument(2);
      const double b = argument(3);
      if (std == 0) {
        std::fill(out, out + elements.size(), RoundInto(mean, a, b));
        return;
      }
      // Near 1 a double cannot tell probabilities apart; bounds above the mean are mirrored into the lower tail.
      const bool mirrored = (a - mean) / std > 0;
      const double low = NormalCdf(mirrored ? (mean - b) / std : (a - mean) / std);
      const double high = NormalCdf(mirrored ? (mean - a) / std : (b - mean) / std);
      // So far out that no probability is left: the bound next to the mean.
      const double nearest = mirrored ? a : b;
      for (int64_t i = elements.begin; i < elements.end; ++i) {
        const double p = low + (high - low) * InitUniform(key, i);
        const double z = p > 0 && p < 1 ? NormalQuantile(p) : (nearest - mean) / std * (mirrored ? -1 : 1);
        *out++ = RoundInto(mean + std * (mirrored ? -z : z), a, b);
      }
      return;
    }
    case DistributionKind::Uniform: {
      const double a = argument(0);
      const double b = argument(1);
      for (int64_t i = elements.begin; i < elements.end; ++i) {
        *out++ = RoundInto(a + (b - a) * InitUniform(key, i), a, b);
      }
      return;
    }
  }
}

}  // namespace shardc
