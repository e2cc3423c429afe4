// What the ops of the loss share: the log of the sum of exponentials of a row, found by a block in one pass, and the
// sum of the losses of rows.
#pragma once

#include <cmath>

#include "runtime/kernels/cuda/device_code.h"

namespace shardc::cuda {

constexpr int RowThreads = 256;

/// A sum of e^(logit - greatest), and the greatest logit in it.
struct ExponentialSum {
  float greatest;
  float sum;
};

/// Returns the number that is subtracted before an exponential: minus infinity less itself would be NaN.
__device__ __forceinline__ auto ShiftOf(float greatest) -> float { return greatest == -INFINITY ? 0.0F : greatest; }

struct MergeSums {
  __device__ __forceinline__ auto operator()(const ExponentialSum& a, const ExponentialSum& b) const -> ExponentialSum {
    const float greatest = fmaxf(a.greatest, b.greatest);
    const float shift = ShiftOf(greatest);
    return {greatest, a.sum * expf(a.greatest - shift) + b.sum * expf(b.greatest - shift)};
  }
};

/// The log of the sum of exponentials of a row, to each thread of the block; minus infinity of no column.
template <int N, class T>
__device__ __forceinline__ auto LogSumExpOfRow(const T* logits_V, int64_t vocabulary) -> float {
  constexpr ExponentialSum None{-INFINITY, 0.0F};
  ExponentialSum own = None;
  for (int64_t v = Thread() * N; v < vocabulary; v += RowThreads * N) {
    const Floats<N> logits = LoadFloats<N>(logits_V + v);
    float greatest = own.greatest;
    UNROLL
    for (int i = 0; i < N; ++i) {
      greatest = fmaxf(greatest, logits.at[i]);
    }
    const float shift = ShiftOf(greatest);
    own = {greatest, own.sum * expf(own.greatest - shift)};
    UNROLL
    for (int i = 0; i < N; ++i) {
      own.sum += expf(logits.at[i] - shift);
    }
  }
  const ExponentialSum all = BlockReduce(own, None, MergeSums{});
  return static_cast<float>(static_cast<double>(all.greatest) + log(static_cast<double>(all.sum)));
}

constexpr int LossThreads = 512;

/// loss (+)= the sum of the losses of rows, in an order that depends on their number alone. One block.
template <class Loss>
__global__ void __launch_bounds__(LossThreads) SumLosses(const Loss* losses_N, int64_t rows, bool adds, Loss* loss) {
  Loss own = 0;
  for (int64_t row = Thread(); row < rows; row += LossThreads) {
    own += losses_N[row];
  }
  const Loss total = BlockSum(own);
  if (Thread() == 0) {
    *loss = (adds ? *loss : 0) + total;
  }
}

}  // namespace shardc::cuda
