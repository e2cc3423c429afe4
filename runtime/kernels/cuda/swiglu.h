// 1 / (1 + e^-x), of swiglu and its backward.
#pragma once

#include "runtime/kernels/cuda/device_code.h"

namespace shardc::cuda {

__device__ __forceinline__ auto Sigmoid(float x) -> float { return 1.0F / (1.0F + expf(-x)); }

}  // namespace shardc::cuda
