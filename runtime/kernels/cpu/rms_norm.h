// y = x * rstd * weight and its backward, for rms_norm, whose rows are those of x, and for head_norm, whose rows are
// the heads of all positions. x_NH, y_NH, dy_NH, dx_NH: N rows, of which each has an rstd; weight_H, dweight_H: H
// columns.
#pragma once

#include <algorithm>

#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc {

/// The rows and columns that a norm sees.
template <class Norm>
auto NormRows(const Norm& op, const Plan& plan) -> Matrix {
  return {.rows = ElementsOf(plan, op.rstd), .columns = ElementsOf(plan, op.weight)};
}

/// Row by row. T: what the op computes in; X: what x is of.
template <class T, class X, class Norm>
auto BindNormOfRows(const Norm& op, Binder& binder) -> Kernel {
  return [x = Resolve<const X>(binder, op.x), weight = Resolve<const T>(binder, op.weight),
          y = Resolve<T>(binder, op.y), rstd = Resolve<float>(binder, op.rstd), size = NormRows(op, binder.plan()),
          eps = op.eps, norm = LoopsOf(binder.plan()).Of<T, X>().RmsNorm](const Moment& moment) -> Status {
    const X* const x_NH = x.At(moment);
    const T* const weight_H = weight.At(moment);
    T* const y_NH = y.At(moment);
    float* const rstd_N = rstd.At(moment);
    ParallelRanges(size.rows, RowsPerThread(size.columns), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * size.columns;
      norm(x_NH + first, weight_H, end - begin, size.columns, eps, y_NH + first, rstd_N + begin);
    });
    return Success{};
  };
}

/// dx row by row, then dweight column by column in its own pass over dy and x: threads share the columns, never the
/// rows, so that the order of the sums is one.
template <class T, class X, class NormBackward>
auto BindNormOfRowsBackward(const NormBackward& op, Binder& binder) -> Kernel {
  const bool adds_dx = AddsOnto(binder, op.dx, op.dx_onto);
  const bool adds_dweight = AddsOnto(binder, op.dweight, op.dweight_onto);
  const ResidualLoops<T, X>& loops = LoopsOf(binder.plan()).Of<T, X>();
  return [dy = Resolve<const T>(binder, op.dy), x = Resolve<const X>(binder, op.x),
          weight = Resolve<const T>(binder, op.weight), rstd = Resolve<const float>(binder, op.rstd),
          dx = Resolve<X>(binder, op.dx), dweight = Resolve<float>(binder, op.dweight),
          size = NormRows(op, binder.plan()), adds_dx, adds_dweight, &loops](const Moment& moment) -> Status {
    const T* const dy_NH = dy.At(moment);
    const X* const x_NH = x.At(moment);
    const T* const weight_H = weight.At(moment);
    const float* const rstd_N = rstd.At(moment);
    X* const dx_NH = dx.At(moment);
    float* const dweight_H = dweight.At(moment);
    ParallelRanges(size.rows, RowsPerThread(size.columns), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * size.columns;
      loops.RmsNormBackward(dy_NH + first, x_NH + first, weight_H, rstd_N + begin, end - begin, size.columns, adds_dx,
                            dx_NH + first);
    });
    ParallelRanges(size.columns, std::max(LeastColumns, RowsPerThread(size.rows)), [&](int64_t begin, int64_t end) {
      loops.RmsNormBackwardWeight(dy_NH, x_NH, rstd_N, size.rows, size.columns, begin, end, adds_dweight, dweight_H);
    });
    return Success{};
  };
}

}  // namespace shardc
