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
  const double q = p - 0.5;
  if (IsCentral(q)) {
    return CentralQuantile(q);
  }
  const double tail = TailQuantile(q < 0 ? p : 1 - p);
  return q < 0 ? -tail : tail;
}

static auto NormalCdf(double x) -> double { return 0.5 * std::erfc(-x * M_SQRT1_2); }

/// The floats next to the bounds within [low, high]: what is rounded to float and then kept between them has not left
/// it.
struct FloatBounds {
  FloatBounds(double low_bound, double high_bound)
      : low(static_cast<float>(low_bound)), high(static_cast<float>(high_bound)) {
    low = low < low_bound ? std::nextafter(low, std::numeric_limits<float>::infinity()) : low;
    high = high > high_bound ? std::nextafter(high, -std::numeric_limits<float>::infinity()) : high;
  }
  auto Round(double value) const -> float { return std::min(std::max(static_cast<float>(value), low), high); }

  float low;
  float high;
};

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
        std::fill(out, out + elements.size(), FloatBounds(a, b).Round(mean));
        return;
      }
      const FloatBounds bounds(a, b);
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
          out[i] = bounds.Round(mean + std * (mirrored ? -here : here));
        }
        out += n;
      });
      return;
    }
    case DistributionKind::Uniform: {
      const double a = argument(0);
      const double b = argument(1);
      const FloatBounds bounds(a, b);
      ForEachUniform(key, elements, [&](const BlockOfDoubles& u, int64_t n) {
        for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
          out[i] = bounds.Round(a + (b - a) * u[i]);
        }
        out += n;
      });
      return;
    }
  }
}

}  // namespace shardc
