#include "runtime/init/fill.h"

#include <algorithm>
#include <cmath>
#include <limits>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "compiler/base/check.h"
#include "runtime/init/blocks.h"
#include "runtime/init/normal_quantile.h"

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

auto NormalQuantile(double p) -> double {
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
  if (IsCentral(q)) {
    return CentralQuantile(q);
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

/// Calls draw(u, n) for the elements in order, n <= InitBlock at a time: the first n of u are theirs.
template <class Draw>
static auto ForEachUniform(PhiloxKey key, Interval elements, const Draw& draw) -> void {
  BlockOfDoubles u;
  for (int64_t first = elements.begin; first < elements.end; first += InitBlock) {
    UniformBlock(key, first, u);
    draw(u, std::min(InitBlock, elements.end - first));
  }
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
      ForEachUniform(key, elements, [&](const BlockOfDoubles& u, int64_t n) {
        BlockOfDoubles z;
        NormalQuantileBlock(u, z);
        for (int64_t i = 0; i < n; ++i) {
          *out++ = static_cast<float>(mean + std * z[static_cast<size_t>(i)]);
        }
      });
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
      const auto is_probability = [](double p) { return p > 0 && p < 1; };
      ForEachUniform(key, elements, [&](const BlockOfDoubles& u, int64_t n) {
        BlockOfDoubles p;
        BlockOfDoubles inside;
        BlockOfDoubles z;
        for (size_t i = 0; i < p.size(); ++i) {
          p[i] = low + (high - low) * u[i];
          inside[i] = is_probability(p[i]) ? p[i] : 0.5;
        }
        NormalQuantileBlock(inside, z);
        for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
          const double here = is_probability(p[i]) ? z[i] : (nearest - mean) / std * (mirrored ? -1 : 1);
          *out++ = RoundInto(mean + std * (mirrored ? -here : here), a, b);
        }
      });
      return;
    }
    case DistributionKind::Uniform: {
      const double a = argument(0);
      const double b = argument(1);
      ForEachUniform(key, elements, [&](const BlockOfDoubles& u, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          *out++ = RoundInto(a + (b - a) * u[static_cast<size_t>(i)], a, b);
        }
      });
      return;
    }
  }
}

}  // namespace shardc
