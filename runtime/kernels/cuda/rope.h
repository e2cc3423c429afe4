// rope and rope_pair: (x[i], x[i + D/2]) of each head is rotated by the angle of its position, in place. q_NW, k_NW: N
// rows of whole heads, a row for each of the table: a position of all sequences, or of one. table_N2D: cosines, then
// sines, D/2 each. A column of blocks has one row; a thread takes a vector of pairs, of q first.
// Source: Su et al. 2021, "RoFormer"; halves as in Hugging Face's rotate_half.
#pragma once

#include "runtime/kernels/cuda/device_code.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

constexpr int RopeThreads = 256;

/// Values that are rotated in place.
template <class T>
struct RopeOperands {
  T* q_NW = nullptr;
  /// Null if there is q alone.
  T* k_NW = nullptr;
  /// Elements of a row.
  int64_t q_width = 0;
  int64_t k_width = 0;
};

template <int N, class T>
static __global__ void __launch_bounds__(RopeThreads)
    RopeKernel(const float* table_N2D, RopeOperands<T> operands, int q_vectors, int half, float sign) {
  int vector = static_cast<int>(BlockY()) * RopeThreads + Thread();
  T* x = operands.q_NW + BlockX() * operands.q_width;
  int64_t width = operands.q_width;
  if (vector >= q_vectors) {
    vector -= q_vectors;
    x = operands.k_NW + BlockX() * operands.k_width;
    width = operands.k_width;
  }
  const int64_t head = vector / (half / N);
  const int pair = vector % (half / N) * N;
  if (head * 2 * half >= width) {
    return;
  }
  const float* const cosines = table_N2D + BlockX() * 2 * half + pair;
  T* const low = x + head * 2 * half + pair;
  const Floats<N> cosine = LoadFloats<N>(cosines);
  const Floats<N> sine = LoadFloats<N>(cosines + half);
  Floats<N> a = LoadFloats<N>(low);
  Floats<N> b = LoadFloats<N>(low + half);
  UNROLL
  for (int i = 0; i < N; ++i) {
    const float turn = sign * sine.at[i];
    const float turned = a.at[i] * cosine.at[i] - b.at[i] * turn;
    b.at[i] = b.at[i] * cosine.at[i] + a.at[i] * turn;
    a.at[i] = turned;
  }
  StoreFloats(low, a);
  StoreFloats(low + half, b);
}

/// Requires: head_dim is even and divides the widths.
template <class T>
auto LaunchRope(DeviceStream stream, const float* table_N2D, const RopeOperands<T>& operands, int64_t rows,
                int64_t head_dim, bool inverse) -> Status {
  constexpr int N = PackSize<T>;
  const int half = static_cast<int>(head_dim / 2);
  const auto launch = [&]<int Width>() {
    const int64_t vectors = (operands.q_width + operands.k_width) / 2 / Width;
    return Launch(stream, {.grid = {rows, BlocksFor(vectors, RopeThreads)}, .threads = RopeThreads},
                  RopeKernel<Width, T>, table_N2D, operands, static_cast<int>(operands.q_width / 2 / Width), half,
                  inverse ? -1.0F : 1.0F);
  };
  const bool by_vectors =
      half % N == 0 && IsAligned<N>(operands.q_NW) && IsAligned<N>(operands.k_NW) && IsAligned<N>(table_N2D);
  return by_vectors ? launch.template operator()<N>() : launch.template operator()<1>();
}

}  // namespace shardc::cuda
