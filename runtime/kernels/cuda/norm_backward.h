// The backward of rms_norm, head_norm and layer_norm, in one pass over dy and x. With x' = (x - mean) rstd and
// g = dy weight: dx = rstd (g - mean(g) - x' mean(g x')), written or added; dweight = sum over rows of dy x'; dbias =
// sum over rows of dy. rms_norm has no mean, no mean(g) and no dbias. dy_NH, x_NH, dx_NH: N rows, H columns; weight_H;
// mean_N, rstd_N; partials_RH: a range of rows has a row of sums for dweight, all those for dbias follow.
//
// 1. NormBackwardKernel: a block walks through every R-th group of rows, and sums the columns that its threads keep.
// 2. ColumnSumsKernel sums the columns past these, of rows that are wider than a block keeps.
// 3. SumRangesKernel sums the ranges.
#pragma once

#include "runtime/kernels/cuda/column_sums.h"
#include "runtime/kernels/cuda/rows.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

/// Addresses of the operands. T: the type that the op computes in; X: the type of x.
template <class T, class X>
struct NormGradients {
  const T* dy_NH = nullptr;
  const X* x_NH = nullptr;
  const T* weight_H = nullptr;
  const float* mean_N = nullptr;
  const float* rstd_N = nullptr;
  X* dx_NH = nullptr;
  bool adds_dx = false;
  float* partials_RH = nullptr;
};

/// Writes a block's sums of the kept columns: those of its groups of rows, in order.
template <int N>
__device__ __forceinline__ auto StoreRange(const Floats<N> (&sums)[KeptVectors<N>], const RowPlace& place, int columns,
                                           float* partials_H) -> void {
  if (NumThreads() == place.width) {
    ForKept<N>(place, columns, [&](int k, int column) { StoreFloats(partials_H + column, sums[k]); });
    return;
  }
  auto* const of_groups = DynamicShared<float>();
  const int kept = KeptVectors<N> * N * place.width;
  // The sums before these have been read.
  __syncthreads();
  UNROLL
  for (int k = 0; k < KeptVectors<N>; ++k) {
    StoreFloats(of_groups + place.group * kept + place.Column<N>(k), sums[k]);
  }
  __syncthreads();
  for (int column = Thread(); column < columns && column < kept; column += NumThreads()) {
    double total = 0;
    for (int group = 0; group < NumThreads() / place.width; ++group) {
      total += static_cast<double>(of_groups[group * kept + column]);
    }
    partials_H[column] = static_cast<float>(total);
  }
}

template <bool HasMean, int N, class T, class X>
static __global__ void __launch_bounds__(MostRowThreads)
    NormBackwardKernel(NormGradients<T, X> operands, RowShape shape) {
  const RowPlace place(shape.width);
  const int rows_at_once = NumThreads() / shape.width;
  const KeptRow<N, T> weight(operands.weight_H, place, shape.columns);
  Floats<N> dweight[KeptVectors<N>] = {};
  Floats<N> dbias[KeptVectors<N>] = {};
  int turn = 0;
  for (int64_t first = BlockX() * rows_at_once; first < shape.rows;
       first += static_cast<int64_t>(gridDim.x) * rows_at_once) {
    const int64_t row = first + place.group;
    const int columns = row < shape.rows ? shape.columns : 0;
    const T* const dy_H = operands.dy_NH + row * shape.columns;
    const X* const x_H = operands.x_NH + row * shape.columns;
    X* const dx_H = operands.dx_NH + row * shape.columns;
    const float rstd = columns > 0 ? operands.rstd_N[row] : 0.0F;
    const float mean = HasMean && columns > 0 ? operands.mean_N[row] : 0.0F;
    const KeptRow<N, T> dy(dy_H, place, columns);
    const KeptRow<N, X> x(x_H, place, columns);

    // What dx adds to, zeros if it is written. The backward of layer_norm, which has more in registers, reads it later.
    const KeptRow<N, X> before(dx_H, place, operands.adds_dx && !HasMean ? columns : 0);
    const auto before_at = [&](int column) { return operands.adds_dx ? LoadFloats<N>(dx_H + column) : Floats<N>{}; };

    // The sums of g x' and of g.
    Sums<HasMean ? 2 : 1> sums;
    const auto add = [&](const Floats<N>& d, const Floats<N>& element, const Floats<N>& w) {
      UNROLL
      for (int i = 0; i < N; ++i) {
        const float g = d.at[i] * w.at[i];
        sums.at[0] += g * ((element.at[i] - mean) * rstd);
        if constexpr (HasMean) {
          sums.at[1] += g;
        }
      }
    };
    ForKept<N>(place, columns, [&](int k, int) {
      const Floats<N> d = dy.At(k);
      const Floats<N> element = x.At(k);
      add(d, element, weight.At(k));
      UNROLL
      for (int i = 0; i < N; ++i) {
        dweight[k].at[i] += d.at[i] * ((element.at[i] - mean) * rstd);
        dbias[k].at[i] += d.at[i];
      }
    });
    if constexpr (N == 1) {
      ForRest<1>(place, columns, [&](int column) {
        add(LoadFloats<1>(dy_H + column), LoadFloats<1>(x_H + column), LoadFloats<1>(operands.weight_H + column));
      });
    }
    sums = RowSum(sums, place, turn);
    turn ^= 1;
    const float dot_mean = sums.at[0] / static_cast<float>(shape.columns);
    const float g_mean = HasMean ? sums.at[HasMean ? 1 : 0] / static_cast<float>(shape.columns) : 0.0F;

    const auto store = [&](int column, Floats<N> dx, const Floats<N>& d, const Floats<N>& element, const Floats<N>& w) {
      UNROLL
      for (int i = 0; i < N; ++i) {
        const float g = d.at[i] * w.at[i];
        dx.at[i] += rstd * (g - g_mean - (element.at[i] - mean) * rstd * dot_mean);
      }
      StoreFloats(dx_H + column, dx);
    };
    ForKept<N>(place, columns, [&](int k, int column) {
      store(column, HasMean ? before_at(column) : before.At(k), dy.At(k), x.At(k), weight.At(k));
    });
    if constexpr (N == 1) {
      ForRest<1>(place, columns, [&](int column) {
        store(column, before_at(column), LoadFloats<1>(dy_H + column), LoadFloats<1>(x_H + column),
              LoadFloats<1>(operands.weight_H + column));
      });
    }
  }
  float* const partials_H = operands.partials_RH + BlockX() * shape.columns;
  StoreRange(dweight, place, shape.columns, partials_H);
  if constexpr (HasMean) {
    StoreRange(dbias, place, shape.columns, partials_H + RangesOfRows * shape.columns);
  }
}

/// The terms of dweight, or of dbias.
template <bool OfBias, class T, class X>
struct NormTerms {
  NormGradients<T, X> operands;
  int64_t columns;

  template <int N>
  __device__ __forceinline__ auto At(int64_t row, int column) const -> Floats<N> {
    Floats<N> terms = LoadFloats<N>(operands.dy_NH + row * columns + column);
    if constexpr (!OfBias) {
      const Floats<N> x = LoadFloats<N>(operands.x_NH + row * columns + column);
      const float mean = operands.mean_N == nullptr ? 0.0F : operands.mean_N[row];
      UNROLL
      for (int i = 0; i < N; ++i) {
        terms.at[i] *= (x.at[i] - mean) * operands.rstd_N[row];
      }
    }
    return terms;
  }
};

/// The gradient that a norm adds its sums over rows to.
struct ParameterGradient {
  float* sums_H = nullptr;
  bool adds = false;
};

template <int N, bool HasMean, class T, class X>
auto LaunchNormBackwardBy(DeviceStream stream, const NormGradients<T, X>& operands, int64_t rows, int64_t columns,
                          const ParameterGradient& dweight, const ParameterGradient& dbias) -> Status {
  const RowShape shape = ShapeRows<N>(rows, columns);
  const int64_t ranges = RangesFor(rows, shape.RowsPerBlock());
  const int64_t shared_bytes = int64_t{shape.RowsPerBlock()} * shape.kept * static_cast<int64_t>(sizeof(float));
  RETURN_IF_ERROR(Launch(
      stream, {.grid = {ranges}, .threads = shape.threads, .shared_bytes = shape.RowsPerBlock() > 1 ? shared_bytes : 0},
      NormBackwardKernel<HasMean, N, T, X>, operands, shape));
  float* const bias_partials_RH = operands.partials_RH + RangesOfRows * columns;
  if (columns > shape.kept) {
    const auto sum_rest = [&]<bool OfBias>(float* partials_RH) {
      return Launch(stream,
                    {.grid = {ranges, BlocksFor(columns - shape.kept, WarpSize * N)}, .threads = ColumnSumThreads},
                    ColumnSumsKernel<N, NormTerms<OfBias, T, X>>, NormTerms<OfBias, T, X>{operands, columns}, rows,
                    shape.kept, columns, partials_RH);
    };
    RETURN_IF_ERROR(sum_rest.template operator()<false>(operands.partials_RH));
    if constexpr (HasMean) {
      RETURN_IF_ERROR(sum_rest.template operator()<true>(bias_partials_RH));
    }
  }
  if constexpr (HasMean) {
    RETURN_IF_ERROR(LaunchSumRanges(stream, bias_partials_RH, ranges, shape.columns, dbias.adds, dbias.sums_H));
  }
  return LaunchSumRanges(stream, operands.partials_RH, ranges, shape.columns, dweight.adds, dweight.sums_H);
}

template <bool HasMean, class T, class X>
auto LaunchNormBackward(DeviceStream stream, const NormGradients<T, X>& operands, int64_t rows, int64_t columns,
                        const ParameterGradient& dweight, const ParameterGradient& dbias) -> Status {
  constexpr int N = PackSize<T, X>;
  // A kernel that takes vectors has no registers for columns that it does not keep.
  const bool by_vectors = columns % N == 0 && columns <= MostKept<N> && IsAligned<N>(operands.dy_NH) &&
                          IsAligned<N>(operands.x_NH) && IsAligned<N>(operands.weight_H) &&
                          IsAligned<N>(operands.dx_NH) && IsAligned<N>(operands.partials_RH);
  return by_vectors ? LaunchNormBackwardBy<N, HasMean>(stream, operands, rows, columns, dweight, dbias)
                    : LaunchNormBackwardBy<1, HasMean>(stream, operands, rows, columns, dweight, dbias);
}

/// Binds rms_norm_backward or head_norm_backward, whose rows are counted by rstd.
template <class T, class X, class NormBackward>
auto BindNormOfRowsBackward(const NormBackward& op, Binder& binder) -> Kernel {
  CheckScratch(op, binder.plan());
  return [stream = StreamOf(binder.queue()), dy = Resolve<const T>(binder, op.dy), x = Resolve<const X>(binder, op.x),
          weight = Resolve<const T>(binder, op.weight), rstd = Resolve<const float>(binder, op.rstd),
          dx = Resolve<X>(binder, op.dx), dweight = Resolve<float>(binder, op.dweight),
          scratch = Resolve<float>(binder, op.scratch), rows = ElementsOf(binder.plan(), op.rstd),
          columns = ElementsOf(binder.plan(), op.weight), adds_dx = AddsOnto(binder, op.dx, op.dx_onto),
          adds_dweight = AddsOnto(binder, op.dweight, op.dweight_onto)](const Moment& moment) -> Status {
    const NormGradients<T, X> operands{.dy_NH = dy.At(moment),
                                       .x_NH = x.At(moment),
                                       .weight_H = weight.At(moment),
                                       .rstd_N = rstd.At(moment),
                                       .dx_NH = dx.At(moment),
                                       .adds_dx = adds_dx,
                                       .partials_RH = scratch.At(moment)};
    return LaunchNormBackward<false>(stream, operands, rows, columns, {dweight.At(moment), adds_dweight}, {});
  };
}

}  // namespace shardc::cuda
