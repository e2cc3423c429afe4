// rope: rotates (x[i], x[i + D/2]) of each head by the angle of its position, in place.
// x_SBA: S positions, B batch, A heads times D head_dim; table_S2D: cosines, then sines, D/2 each.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

auto Bind(const op::Rope& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.x).dtype, [&]<class T>() -> Kernel {
    CheckSameBytes(binder, op.y, op.x);
    const Dims shape = binder.ViewOf(op.y).shape;
    CHECK(shape.size() == 3 && op.head_dim % 2 == 0, "rope of {} with head_dim {}", ToText(shape), op.head_dim);
    return BindOver(
        [positions = shape[0], width = shape[1] * shape[2], half = op.head_dim / 2, sign = op.inverse ? -1.0F : 1.0F,
         rope = LoopsOf(binder.plan()).Of<T>().Rope](T* y_SBA, const float* table_S2D) {
          ParallelRanges(positions, RowsPerThread(width), [&](int64_t begin, int64_t end) {
            rope(table_S2D + begin * 2 * half, end - begin, width, half, sign, y_SBA + begin * width);
          });
        },
        Resolve<T>(binder, op.y), Resolve<const float>(binder, op.table));
  });
}

}  // namespace shardc::cpu
