// rope: one launch over x.
#include "runtime/kernels/cuda/rope.h"

namespace shardc::cuda {

auto Bind(const op::Rope& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.x).dtype, [&]<class T>() -> Kernel {
    CheckSameBytes(binder, op.y, op.x);
    const Dims shape = binder.ViewOf(op.y).shape;
    CHECK(shape.size() == 3 && op.head_dim % 2 == 0, "rope of {} with head_dim {}", ToText(shape), op.head_dim);
    const int64_t rows = binder.ViewOf(op.table).num_elements() / op.head_dim;
    return [stream = StreamOf(binder.queue()), y = Resolve<T>(binder, op.y),
            table = Resolve<const float>(binder, op.table), rows, width = NumElements(shape) / rows,
            head_dim = op.head_dim, inverse = op.inverse](const Moment& moment) -> Status {
      return LaunchRope(stream, table.At(moment), RopeOperands<T>{.q_NW = y.At(moment), .q_width = width}, rows,
                        head_dim, inverse);
    };
  });
}

}  // namespace shardc::cuda
