// rope: rotates (x[i], x[i + D/2]) of each head by the angle of its position, in place.
// x_NW: N rows of W elements, a row for each of the table: a position of all sequences, or of one. table_N2D: cosines,
// then sines, D/2 each.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

auto Bind(const op::Rope& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.x).dtype, [&]<class T>() -> Kernel {
    CheckSameBytes(binder, op.y, op.x);
    const Dims shape = binder.ViewOf(op.y).shape;
    CHECK(shape.size() == 3 && op.head_dim % 2 == 0, "rope of {} with head_dim {}", ToText(shape), op.head_dim);
    const int64_t rows = binder.ViewOf(op.table).num_elements() / op.head_dim;
    return BindOver(
        [rows, width = NumElements(shape) / rows, half = op.head_dim / 2, sign = op.inverse ? -1.0F : 1.0F,
         rope = LoopsOf(binder.plan()).Of<T>().Rope](T* y_NW, const float* table_N2D) {
          ParallelRanges(rows, RowsPerThread(width), [&](int64_t begin, int64_t end) {
            rope(table_N2D + begin * 2 * half, end - begin, width, half, sign, y_NW + begin * width);
          });
        },
        Resolve<T>(binder, op.y), Resolve<const float>(binder, op.table));
  });
}

}  // namespace shardc::cpu
