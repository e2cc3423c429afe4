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
  return BindOver(
      [size = NormRows(op, binder.plan()), eps = op.eps, norm = LoopsOf(binder.plan()).Of<T, X>().RmsNorm](
          const X* x_NH, const T* weight_H, T* y_NH, float* rstd_N) {
        ParallelRanges(size.rows, RowsPerThread(size.columns), [&](int64_t begin, int64_t end) {
          const int64_t first = begin * size.columns;
          norm(x_NH + first, weight_H, end - begin, size.columns, eps, y_NH + first, rstd_N + begin);
        });
      },
      Resolve<const X>(binder, op.x), Resolve<const T>(binder, op.weight), Resolve<T>(binder, op.y),
      Resolve<float>(binder, op.rstd));
}

/// dx row by row, then dweight column by column in its own pass over dy and x: threads share the columns, never the
/// rows, so that the order of the sums is one.
template <class T, class X, class NormBackward>
auto BindNormOfRowsBackward(const NormBackward& op, Binder& binder) -> Kernel {
  const bool adds_dx = AddsOnto(binder, op.dx, op.dx_onto);
  const bool adds_dweight = AddsOnto(binder, op.dweight, op.dweight_onto);
  const ResidualLoops<T, X>& loops = LoopsOf(binder.plan()).Of<T, X>();
  return BindOver(
      [size = NormRows(op, binder.plan()), adds_dx, adds_dweight, &loops](
          const T* dy_NH, const X* x_NH, const T* weight_H, const float* rstd_N, X* dx_NH, float* dweight_H) {
        ParallelRanges(size.rows, RowsPerThread(size.columns), [&](int64_t begin, int64_t end) {
          const int64_t first = begin * size.columns;
          loops.RmsNormBackward(dy_NH + first, x_NH + first, weight_H, rstd_N + begin, end - begin, size.columns,
                                adds_dx, dx_NH + first);
        });
        ParallelRanges(size.columns, std::max(LeastColumns, RowsPerThread(size.rows)), [&](int64_t begin, int64_t end) {
          loops.RmsNormBackwardWeight(dy_NH, x_NH, rstd_N, size.rows, size.columns, begin, end, adds_dweight,
                                      dweight_H);
        });
      },
      Resolve<const T>(binder, op.dy), Resolve<const X>(binder, op.x), Resolve<const T>(binder, op.weight),
      Resolve<const float>(binder, op.rstd), Resolve<X>(binder, op.dx), Resolve<float>(binder, op.dweight));
}

}  // namespace shardc
