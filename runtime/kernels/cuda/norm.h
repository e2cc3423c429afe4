// rms_norm, head_norm and layer_norm: y = (x - mean) * rstd * weight + bias, in one pass over x. x_NH, y_NH: N rows, H
// columns; weight_H, bias_H; mean_N, rstd_N. rms_norm has no mean and no bias. add_rms_norm has rms_norm's y, of the
// sum of x and a branch.
//
// The statistics of layer_norm are those of the CPU's loops: a number near the mean, the rest of the mean from
// differences to it, squares of the differences to both, so that a row far from 0 loses no digits.
// Sources: Zhang, Sennrich 2019, "Root Mean Square Layer Normalization", eq. 4; Ba, Kiros, Hinton 2016, "Layer
// Normalization", eq. 4.
#pragma once

#include "runtime/kernels/cuda/rows.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

/// Addresses of a norm's operands. T: the type that the op computes in; X: the type of x.
template <class T, class X>
struct NormOperands {
  const X* x_NH = nullptr;
  const T* weight_H = nullptr;
  const T* bias_H = nullptr;
  T* y_NH = nullptr;
  float* mean_N = nullptr;
  float* rstd_N = nullptr;
  /// Operand that is added to x, and the sum, which is normed instead; null if x itself is normed.
  const T* branch_NH = nullptr;
  X* sum_NH = nullptr;
};

/// The first vector of a row's sum, which it also stores.
template <int N, class T, class X>
__device__ __forceinline__ auto StoreSum(const X* x, const T* branch, X* sum) -> Pack<X, N> {
  Floats<N> elements = LoadFloats<N>(x);
  const Floats<N> added = LoadFloats<N>(branch);
  UNROLL
  for (int i = 0; i < N; ++i) {
    elements.at[i] += added.at[i];
  }
  const Pack<X, N> rounded = ToPack<X>(elements);
  StorePack<N>(sum, rounded);
  return rounded;
}

enum class NormOf { Row, RowWithMean, Sum };

template <NormOf Of, int N, class T, class X>
static __global__ void __launch_bounds__(MostRowThreads)
    NormKernel(NormOperands<T, X> operands, RowShape shape, float eps) {
  const RowPlace place(shape.width);
  const int64_t row = BlockX() * (NumThreads() / shape.width) + place.group;
  const int columns = row < shape.rows ? shape.columns : 0;
  const auto size = static_cast<float>(shape.columns);
  const int64_t first = row * shape.columns;
  // The row that is normed. A thread reads of a sum what it has stored itself.
  const X* const x_H = (Of == NormOf::Sum ? operands.sum_NH : operands.x_NH) + first;
  const auto load = [&](int column) {
    if constexpr (Of == NormOf::Sum) {
      const int64_t at = first + column;
      return StoreSum<N>(operands.x_NH + at, operands.branch_NH + at, operands.sum_NH + at);
    } else {
      return LoadPack<N>(x_H + column);
    }
  };
  const KeptRow<N, X> x(place, columns, load);
  if constexpr (Of == NormOf::Sum) {
    ForRest<N>(place, columns, load);
  }

  // The sum over the row of term(element).
  const auto sum_of = [&](const auto& term, int turn) {
    Sums<1> sum;
    const auto add = [&](const Floats<N>& elements) {
      float part = 0;
      UNROLL
      for (int i = 0; i < N; ++i) {
        part += term(elements.at[i]);
      }
      sum.at[0] += part;
    };
    ForKept<N>(place, columns, [&](int k, int) { add(x.At(k)); });
    ForRest<N>(place, columns, [&](int column) { add(LoadFloats<N>(x_H + column)); });
    return RowSum(sum, place, turn).at[0];
  };
  constexpr bool HasMean = Of == NormOf::RowWithMean;
  float near = 0;
  float rest = 0;
  if constexpr (HasMean) {
    near = sum_of([](float element) { return element; }, 0) / size;
    rest = sum_of([=](float element) { return element - near; }, 1) / size;
  }
  const float squares = sum_of(
      [=](float element) {
        const float difference = HasMean ? element - near - rest : element;
        return difference * difference;
      },
      0);
  const float rstd = 1.0F / sqrtf(squares / size + eps);
  if (place.thread == 0 && columns > 0) {
    operands.rstd_N[row] = rstd;
    if constexpr (HasMean) {
      operands.mean_N[row] = near + rest;
    }
  }

  T* const y_H = operands.y_NH + first;
  const auto store = [&](int column, Floats<N> elements) {
    const Floats<N> weight = LoadFloats<N>(operands.weight_H + column);
    if constexpr (HasMean) {
      const Floats<N> bias = LoadFloats<N>(operands.bias_H + column);
      UNROLL
      for (int i = 0; i < N; ++i) {
        elements.at[i] = (elements.at[i] - near - rest) * rstd * weight.at[i] + bias.at[i];
      }
    } else {
      UNROLL
      for (int i = 0; i < N; ++i) {
        elements.at[i] = elements.at[i] * rstd * weight.at[i];
      }
    }
    StoreFloats(y_H + column, elements);
  };
  ForKept<N>(place, columns, [&](int k, int column) { store(column, x.At(k)); });
  ForRest<N>(place, columns, [&](int column) { store(column, LoadFloats<N>(x_H + column)); });
}

template <NormOf Of, class T, class X>
auto LaunchNorm(DeviceStream stream, const NormOperands<T, X>& operands, int64_t rows, int64_t columns, double eps)
    -> Status {
  constexpr int N = PackSize<T, X>;
  const auto launch = [&]<int Width>() {
    const RowShape shape = ShapeRows<Width>(rows, columns);
    return Launch(stream, {.grid = {shape.Blocks()}, .threads = shape.threads}, NormKernel<Of, Width, T, X>, operands,
                  shape, static_cast<float>(eps));
  };
  const bool by_vectors = columns % N == 0 && IsAligned<N>(operands.x_NH) && IsAligned<N>(operands.weight_H) &&
                          IsAligned<N>(operands.bias_H) && IsAligned<N>(operands.y_NH) &&
                          IsAligned<N>(operands.branch_NH) && IsAligned<N>(operands.sum_NH);
  return by_vectors ? launch.template operator()<N>() : launch.template operator()<1>();
}

/// Binds rms_norm or head_norm, whose rows are counted by rstd.
template <class T, class X, class Norm>
auto BindNormOfRows(const Norm& op, Binder& binder) -> Kernel {
  return [stream = StreamOf(binder.queue()), x = Resolve<const X>(binder, op.x),
          weight = Resolve<const T>(binder, op.weight), y = Resolve<T>(binder, op.y),
          rstd = Resolve<float>(binder, op.rstd), rows = ElementsOf(binder.plan(), op.rstd),
          columns = ElementsOf(binder.plan(), op.weight), eps = op.eps](const Moment& moment) -> Status {
    return LaunchNorm<NormOf::Row>(
        stream,
        NormOperands<T, X>{
            .x_NH = x.At(moment), .weight_H = weight.At(moment), .y_NH = y.At(moment), .rstd_N = rstd.At(moment)},
        rows, columns, eps);
  };
}

}  // namespace shardc::cuda
