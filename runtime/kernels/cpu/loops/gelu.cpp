// Source: Hendrycks, Gimpel 2016, "Gaussian Error Linear Units (GELUs)": x times the normal distribution at x, and its
// form with tanh.
#include "runtime/kernels/cpu/loops/exponential.h"
#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc::SHARDC_LOOPS {

/// The normal distribution at x, and x times its density there, which is x times its derivative.
struct NormalLaw {
  float distribution;
  float x_by_density;
};

/// The distribution is 1 - erfc(z) / 2 with z = |x| / sqrt(2), mirrored for x < 0, and erfc(z) = e^-z^2 t p(t) with
/// t = 1 / (1 + z / 2): for all z a polynomial without cancellation. It is fitted at Chebyshev's points of t for z up
/// to 9.4, above which e^-z^2 is 0 in f32; there erfc is off by 5.1e-8 of its value at most. libm's does not vectorise.
[[gnu::always_inline]] inline auto NormalOf(float x) -> NormalLaw {
  const float z = (x < 0 ? -x : x) * 0.707106781F;
  const float t = 1.0F / (1.0F + 0.5F * z);
  float p = -5.925186137e-02F;
  p = p * t + 2.855674814e-01F;
  p = p * t - 4.894429634e-01F;
  p = p * t + 2.808154564e-01F;
  p = p * t - 2.861301336e-02F;
  p = p * t + 2.035502538e-01F;
  p = p * t + 2.428851773e-01F;
  p = p * t + 2.824045932e-01F;
  p = p * t + 2.820848370e-01F;
  const float e = Exp(-0.5F * x * x);
  const float half_erfc = 0.5F * e * t * p;
  return {.distribution = x < 0 ? half_erfc : 1.0F - half_erfc, .x_by_density = x * e * 0.398942280F};
}

/// The same of the form with tanh: (1 + tanh(u)) / 2 = 1 / (1 + e^-2u) with u = sqrt(2 / pi) (x + 0.044715 x^3),
/// mirrored for x < 0, so that no digit is lost of what is missing from 0 or 1. The square stops at 100, where nothing
/// is missing in f32 any more: no power overflows.
[[gnu::always_inline]] inline auto TanhFormOf(float x) -> NormalLaw {
  constexpr float Slope = 1.59576912F;
  const float square = x * x < 100.0F ? x * x : 100.0F;
  const float u2 = Slope * x * (1.0F + 0.044715F * square);
  const float e = Exp(u2 < 0 ? u2 : -u2);
  const float larger = 1.0F / (1.0F + e);
  const float smaller = e * larger;
  return {.distribution = x < 0 ? smaller : larger,
          .x_by_density = x * smaller * larger * Slope * (1.0F + 0.134145F * square)};
}

template <class T, class Law>
[[gnu::always_inline]] inline auto GeluBy(const T* x_N, int64_t n, T* y_N, const Law& law) -> void {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float x = Load(x_N[i]);
    Store(y_N[i], x * law(x).distribution);
  }
}

template <class T>
auto Gelu(const T* x_N, int64_t n, bool tanh_form, T* y_N) -> void {
  if (tanh_form) {
    GeluBy(x_N, n, y_N, [](float x) { return TanhFormOf(x); });
  } else {
    GeluBy(x_N, n, y_N, [](float x) { return NormalOf(x); });
  }
}
INSTANTIATE_ELEMENT_LOOP(Gelu)

template <class T, class Law>
[[gnu::always_inline]] inline auto GeluBackwardBy(const T* dy_N, int64_t n, T* x_N, const Law& law) -> void {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const NormalLaw at_x = law(Load(x_N[i]));
    Store(x_N[i], Load(dy_N[i]) * (at_x.distribution + at_x.x_by_density));
  }
}

/// The gradient is written over x.
template <class T>
auto GeluBackward(const T* dy_N, int64_t n, bool tanh_form, T* x_N) -> void {
  if (tanh_form) {
    GeluBackwardBy(dy_N, n, x_N, [](float x) { return TanhFormOf(x); });
  } else {
    GeluBackwardBy(dy_N, n, x_N, [](float x) { return NormalOf(x); });
  }
}
INSTANTIATE_ELEMENT_LOOP(GeluBackward)

}  // namespace shardc::SHARDC_LOOPS
