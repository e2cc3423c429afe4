// bias_add_backward: dbias = the sum over the rows of dy, column by column: threads share the columns, never the rows,
// so that the order of the sums is one. dy_NH: N rows, H columns; dbias_H.
#include <algorithm>

#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

auto Bind(const op::BiasAddBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.dy).dtype, [&]<class T>() -> Kernel {
    const Matrix size = AsMatrix(binder.plan(), op.dy);
    return BindOver(
        [rows = size.rows, width = size.columns, adds = AddsOnto(binder, op.dbias, op.dbias_onto),
         sum_rows = LoopsOf(binder.plan()).Of<T>().SumRows](const T* dy_NH, float* dbias_H) {
          ParallelRanges(width, std::max(LeastColumns, RowsPerThread(rows)),
                         [&](int64_t begin, int64_t end) { sum_rows(dy_NH, rows, width, begin, end, adds, dbias_H); });
        },
        Resolve<const T>(binder, op.dy), Resolve<float>(binder, op.dbias));
  });
}

}  // namespace shardc::cpu
