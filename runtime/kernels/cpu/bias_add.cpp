// bias_add: y = x + bias, over x, a row at a time. y_NH: N rows, H columns; bias_H.
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

auto Bind(const op::BiasAdd& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() -> Kernel {
    CheckSameBytes(binder, op.y, op.x);
    const Matrix size = AsMatrix(binder.plan(), op.y);
    return BindOver(
        [rows = size.rows, width = size.columns, add = LoopsOf(binder.plan()).Of<T>().BiasAdd](const T* bias_H,
                                                                                               T* y_NH) {
          ParallelRanges(rows, RowsPerThread(width),
                         [&](int64_t begin, int64_t end) { add(bias_H, end - begin, width, y_NH + begin * width); });
        },
        Resolve<const T>(binder, op.bias), Resolve<T>(binder, op.y));
  });
}

}  // namespace shardc::cpu
