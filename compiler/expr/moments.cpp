// The closed forms for a cut normal distribution lose all digits if it is cut narrowly or far out. So its density is
// integrated numerically, between the bounds that matter; the second moment is taken around the mean found first.

#include "compiler/expr/moments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/expr/math.h"

namespace shardc {

/// Computes the integral of f over [low, high], by Gauss-Legendre's rule of five points in each of many cells.
template <class F>
static auto Integral(double low, double high, const F& f) -> double {
  constexpr int NumCells = 512;
  static constexpr std::array<std::pair<double, double>, 5> Points{{{0, 0.5688888888888889},
                                                                    {0.5384693101056831, 0.47862867049936647},
                                                                    {-0.5384693101056831, 0.47862867049936647},
                                                                    {0.906179845938664, 0.23692688505618908},
                                                                    {-0.906179845938664, 0.23692688505618908}}};
  const double half = (high - low) / NumCells / 2;
  double sum = 0;
  for (int cell = 0; cell < NumCells; ++cell) {
    const double middle = low + half * (2 * cell + 1);
    for (const auto& [x, weight] : Points) {
      sum += weight * f(middle + half * x);
    }
  }
  return sum * half;
}

/// Computes the moments of the standard normal distribution cut to [a, b].
static auto MomentsBetween(double a, double b) -> Moments {
  // The likeliest value; farther from it than this, the density is e^-40 of what it is there, or less.
  const double top = std::clamp(0.0, a, b);
  const double reach = std::sqrt(top * top + 80);
  const double low = top > 0 ? a : std::max(a, -reach);
  const double high = top < 0 ? b : std::min(b, reach);
  const auto density = [&](double x) { return Exp((top - x) * (top + x) / 2); };
  const double mass = Integral(low, high, density);
  // Measured from the likeliest value, or the difference would be lost far out.
  const double shift = low == -high ? 0 : Integral(low, high, [&](double x) { return (x - top) * density(x); }) / mass;
  const double variance =
      Integral(low, high, [&](double x) { return ((x - top) - shift) * ((x - top) - shift) * density(x); }) / mass;
  return {.mean = top + shift, .std = std::sqrt(variance)};
}

auto MomentsOf(const Distribution& distribution) -> Moments {
  const std::vector<double>& arguments = distribution.arguments;
  switch (distribution.kind) {
    case DistributionKind::Constant: return {.mean = arguments.at(0), .std = 0};
    case DistributionKind::Normal: return {.mean = arguments.at(0), .std = arguments.at(1)};
    case DistributionKind::Uniform:
      return {.mean = arguments.at(0) / 2 + arguments.at(1) / 2,
              .std = (arguments.at(1) / 2 - arguments.at(0) / 2) / std::sqrt(3.0)};
    case DistributionKind::TruncNormal: {
      const double mean = arguments.at(0);
      const double std = arguments.at(1);
      const Moments standard = MomentsBetween((arguments.at(2) - mean) / std, (arguments.at(3) - mean) / std);
      return {.mean = mean + std * standard.mean, .std = std * standard.std};
    }
  }
  CHECK(false, "kind {}", static_cast<int>(distribution.kind));
}

}  // namespace shardc
