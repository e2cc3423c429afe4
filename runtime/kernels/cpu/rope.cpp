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
    return [y = Resolve<T>(binder, op.y), table = Resolve<const float>(binder, op.table), positions = shape[0],
            width = shape[1] * shape[2], half = op.head_dim / 2, sign = op.inverse ? -1.0F : 1.0F,
            rope = LoopsOf(binder.plan()).Of<T>().Rope](const Moment& moment) -> Status {
      T* const y_SBA = y.At(moment);
      const float* const table_S2D = table.At(moment);
      ParallelRanges(positions, RowsPerThread(width), [&](int64_t begin, int64_t end) {
        rope(table_S2D + begin * 2 * half, end - begin, width, half, sign, y_SBA + begin * width);
      });
      return Success{};
    };
  });
}

}  // namespace shardc::cpu
