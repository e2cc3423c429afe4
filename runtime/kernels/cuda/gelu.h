// The two forms of gelu. Source: Hendrycks, Gimpel 2016, "Gaussian Error Linear Units (GELUs)": x times the normal
// distribution at x, and its form with tanh.
#pragma once

#include "runtime/kernels/cuda/device_code.h"

namespace shardc::cuda {

/// The normal distribution at x, and x times its density there, which is x times its derivative.
struct NormalLaw {
  float distribution;
  float x_by_density;
};

/// By erfc, which loses no digit of what is missing from 0.
struct ByErfc {
  __device__ __forceinline__ auto operator()(float x) const -> NormalLaw {
    return {.distribution = 0.5F * erfcf(-0.707106781F * x), .x_by_density = x * expf(-0.5F * x * x) * 0.398942280F};
  }
};

/// (1 + tanh(u)) / 2 = 1 / (1 + e^-2u) with u = sqrt(2 / pi) (x + 0.044715 x^3), mirrored for x < 0, so that no digit
/// is lost of what is missing from 0 or 1. The square stops at 100, where nothing is missing in f32 any more: no power
/// overflows.
struct ByTanh {
  __device__ __forceinline__ auto operator()(float x) const -> NormalLaw {
    constexpr float Slope = 1.59576912F;
    const float square = x * x < 100.0F ? x * x : 100.0F;
    const float u2 = Slope * x * (1.0F + 0.044715F * square);
    const float e = expf(u2 < 0 ? u2 : -u2);
    const float larger = 1.0F / (1.0F + e);
    const float smaller = e * larger;
    return {.distribution = x < 0 ? smaller : larger,
            .x_by_density = x * smaller * larger * Slope * (1.0F + 0.134145F * square)};
  }
};

}  // namespace shardc::cuda
