// rope: rotates (x[i], x[i + D/2]) of each head by the angle of its position, in place.
// x_SBA: S positions, B batch, A heads times D head_dim; table_S2D: cosines, then sines, D/2 each.
// Source: Su et al. 2021, "RoFormer"; halves as in Hugging Face's rotate_half.
#include "runtime/kernels/cpu/operand.h"
#include "runtime/kernels/cpu/parallel.h"

namespace shardc {

template <class T>
static auto BindRope(const op::Rope& op, Binder& binder) -> Kernel {
  CheckSamePlace(binder, op.y, op.x);
  const Dims shape = binder.ViewOf(op.y).shape;
  CHECK(shape.size() == 3 && op.head_dim % 2 == 0, "rope of {} with head_dim {}", ToText(shape), op.head_dim);
  return [y = Resolve<T>(binder, op.y), table = Resolve<const float>(binder, op.table), positions = shape[0],
          width = shape[1] * shape[2], half = op.head_dim / 2,
          sign = op.inverse ? -1.0F : 1.0F](const Moment& moment) -> Status {
    T* const y_SBA = y.At(moment);
    const float* const table_S2D = table.At(moment);
    ParallelRanges(positions, RowsPerThread(width), [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const float* const cosine = table_S2D + s * 2 * half;
        const float* const sine = cosine + half;
        T* const last = y_SBA + (s + 1) * width;
        for (T* head = y_SBA + s * width; head != last; head += 2 * half) {
#pragma omp simd
          for (int64_t i = 0; i < half; ++i) {
            const float a = static_cast<float>(head[i]);
            const float b = static_cast<float>(head[half + i]);
            const float turn = sign * sine[i];
            head[i] = static_cast<T>(a * cosine[i] - b * turn);
            head[half + i] = static_cast<T>(b * cosine[i] + a * turn);
          }
        }
      }
    });
    return Success{};
  };
}

auto Bind(const op::Rope& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.x).dtype, [&]<class T>() { return BindRope<T>(op, binder); });
}

}  // namespace shardc
