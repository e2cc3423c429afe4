// rope_pair: one launch over q and k.
#include "runtime/kernels/cuda/rope.h"

namespace shardc::cuda {

auto Bind(const op::RopePair& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.q).dtype, [&]<class T>() -> Kernel {
    CheckSameBytes(binder, op.rotated_q, op.q);
    CheckSameBytes(binder, op.rotated_k, op.k);
    const Dims q_shape = binder.ViewOf(op.q).shape;
    const Dims k_shape = binder.ViewOf(op.k).shape;
    CHECK(q_shape.size() == 3 && k_shape.size() == 3 && op.head_dim % 2 == 0, "rope of {} and {} with head_dim {}",
          ToText(q_shape), ToText(k_shape), op.head_dim);
    const int64_t rows = binder.ViewOf(op.table).num_elements() / op.head_dim;
    return [stream = StreamOf(binder.queue()), q = Resolve<T>(binder, op.rotated_q),
            k = Resolve<T>(binder, op.rotated_k), table = Resolve<const float>(binder, op.table), rows,
            q_width = NumElements(q_shape) / rows, k_width = NumElements(k_shape) / rows, head_dim = op.head_dim,
            inverse = op.inverse](const Moment& moment) -> Status {
      const RopeOperands<T> operands{
          .q_NW = q.At(moment), .k_NW = k.At(moment), .q_width = q_width, .k_width = k_width};
      return LaunchRope(stream, table.At(moment), operands, rows, head_dim, inverse);
    };
  });
}

}  // namespace shardc::cuda
