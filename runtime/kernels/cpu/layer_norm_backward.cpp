// layer_norm_backward: dx row by row, then dweight and dbias column by column in a pass of their own over dy and x:
// threads share the columns, never the rows, so that the order of the sums is one. x_NH, dy_NH, dx_NH: N rows, H
// hidden; weight_H, dweight_H, dbias_H; mean_N, rstd_N.
#include <algorithm>

#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

auto Bind(const op::LayerNormBackward& op, Binder& binder) -> Kernel {
  return ForResidualTypes(binder.ViewOf(op.weight).dtype, binder.ViewOf(op.x).dtype, [&]<class T, class R>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.x);
    const bool adds_dx = AddsOnto(binder, op.dx, op.dx_onto);
    const bool adds_dweight = AddsOnto(binder, op.dweight, op.dweight_onto);
    const bool adds_dbias = AddsOnto(binder, op.dbias, op.dbias_onto);
    const ResidualLoops<T, R>& loops = LoopsOf(binder.plan()).Of<T, R>();
    return BindOver(
        [rows = size.rows, hidden = size.columns, adds_dx, adds_dweight, adds_dbias, &loops](
            const T* dy_NH, const R* x_NH, const T* weight_H, const float* mean_N, const float* rstd_N, R* dx_NH,
            float* dweight_H, float* dbias_H) {
          ParallelRanges(rows, RowsPerThread(hidden), [&](int64_t begin, int64_t end) {
            const int64_t first = begin * hidden;
            loops.LayerNormBackward(dy_NH + first, x_NH + first, weight_H, mean_N + begin, rstd_N + begin, end - begin,
                                    hidden, adds_dx, dx_NH + first);
          });
          ParallelRanges(hidden, std::max(LeastColumns, RowsPerThread(rows)), [&](int64_t begin, int64_t end) {
            loops.LayerNormBackwardParameters(dy_NH, x_NH, mean_N, rstd_N, rows, hidden, begin, end, adds_dweight,
                                              adds_dbias, dweight_H, dbias_H);
          });
        },
        Resolve<const T>(binder, op.dy), Resolve<const R>(binder, op.x), Resolve<const T>(binder, op.weight),
        Resolve<const float>(binder, op.mean), Resolve<const float>(binder, op.rstd), Resolve<R>(binder, op.dx),
        Resolve<float>(binder, op.dweight), Resolve<float>(binder, op.dbias));
  });
}

}  // namespace shardc::cpu
