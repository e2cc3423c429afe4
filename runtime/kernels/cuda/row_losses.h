// What the ops of the loss share: the log of the sum of exponentials of a row, found by a block in one pass, and the
// sum of the losses of rows.
#pragma once

#include <cmath>

#include "runtime/kernels/cuda/device_code.h"

namespace shardc::cuda {

/// Threads of a block, which has one row.
constexpr int RowThreads = 512;
/// Vectors that a thread asks memory for at once: with one block on a multiprocessor, which a long row in shared memory
/// allows, 32 KiB are under way.
constexpr int VectorsAtOnce = 4;

/// Calls use(v, load(v)) for each of the thread's vectors in columns [begin, end) of a row, in order.
template <int N, class Load, class Use>
__device__ __forceinline__ auto ForVectorsOfRow(int64_t begin, int64_t end, const Load& load, const Use& use) -> void {
  constexpr int64_t Stride = RowThreads * N;
  for (int64_t first = begin + Thread() * N; first < end; first += VectorsAtOnce * Stride) {
    decltype(load(first)) vectors[VectorsAtOnce] = {};
    UNROLL
    for (int k = 0; k < VectorsAtOnce; ++k) {
      if (const int64_t v = first + k * Stride; v < end) {
        vectors[k] = load(v);
      }
    }
    UNROLL
    for (int k = 0; k < VectorsAtOnce; ++k) {
      if (const int64_t v = first + k * Stride; v < end) {
        use(v, vectors[k]);
      }
    }
  }
}

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

/// The log of the sum of exponentials of a row, to each thread of the block; minus infinity of no column. Calls
/// see(v, vector) for each of the thread's vectors.
template <int N, class T, class See>
__device__ __forceinline__ auto LogSumExpOfRow(const T* logits_V, int64_t vocabulary, const See& see) -> float {
  constexpr ExponentialSum None{-INFINITY, 0.0F};
  ExponentialSum own = None;
  const auto load = [=](int64_t v) { return LoadPack<N>(logits_V + v); };
  ForVectorsOfRow<N>(0, vocabulary, load, [&](int64_t v, const Pack<T, N>& vector) {
    see(v, vector);
    const Floats<N> logits = ToFloats(vector);
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
  });
  const ExponentialSum all = BlockReduce(own, None, MergeSums{});
  return static_cast<float>(static_cast<double>(all.greatest) + log(static_cast<double>(all.sum)));
}

template <int N, class T>
__device__ __forceinline__ auto LogSumExpOfRow(const T* logits_V, int64_t vocabulary) -> float {
  return LogSumExpOfRow<N>(logits_V, vocabulary, [](int64_t, const Pack<T, N>&) {});
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
