// rope: rotates (x[i], x[i + D/2]) of each head by the angle of its position, in place.
// y_SBA: S positions, B batch, A heads times D head_dim; table_S2D: cosines, then sines, D/2 each. A column of blocks
// has one position; a thread takes a vector of pairs.
// Source: Su et al. 2021, "RoFormer"; halves as in Hugging Face's rotate_half.
#include "runtime/kernels/cuda/device_code.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

constexpr int RopeThreads = 256;

template <int N, class T>
static __global__ void __launch_bounds__(RopeThreads)
    RopeKernel(const float* table_S2D, int64_t width, int half, float sign, T* y_SBA) {
  const int vector = static_cast<int>(BlockY()) * RopeThreads + Thread();
  const int64_t head = vector / (half / N);
  const int pair = vector % (half / N) * N;
  if (head * 2 * half >= width) {
    return;
  }
  const float* const cosines = table_S2D + BlockX() * 2 * half + pair;
  T* const low = y_SBA + BlockX() * width + head * 2 * half + pair;
  const Floats<N> cosine = LoadFloats<N>(cosines);
  const Floats<N> sine = LoadFloats<N>(cosines + half);
  Floats<N> a = LoadFloats<N>(low);
  Floats<N> b = LoadFloats<N>(low + half);
  UNROLL
  for (int i = 0; i < N; ++i) {
    const float turn = sign * sine.at[i];
    const float turned = a.at[i] * cosine.at[i] - b.at[i] * turn;
    b.at[i] = b.at[i] * cosine.at[i] + a.at[i] * turn;
    a.at[i] = turned;
  }
  StoreFloats(low, a);
  StoreFloats(low + half, b);
}

template <class T>
static auto BindRope(const op::Rope& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.y, op.x);
  const Dims shape = binder.ViewOf(op.y).shape;
  CHECK(shape.size() == 3 && op.head_dim % 2 == 0, "rope of {} with head_dim {}", ToText(shape), op.head_dim);
  return [stream = StreamOf(binder.queue()), y = Resolve<T>(binder, op.y),
          table = Resolve<const float>(binder, op.table), positions = shape[0], width = shape[1] * shape[2],
          half = static_cast<int>(op.head_dim / 2), sign = op.inverse ? -1.0F : 1.0F](const Moment& moment) -> Status {
    constexpr int N = PackSize<T>;
    T* const y_SBA = y.At(moment);
    const float* const table_S2D = table.At(moment);
    const auto launch = [&]<int Width>() {
      return Launch(stream, {.grid = {positions, BlocksFor(width / 2, RopeThreads * Width)}, .threads = RopeThreads},
                    RopeKernel<Width, T>, table_S2D, width, half, sign, y_SBA);
    };
    const bool by_vectors = half % N == 0 && IsAligned<N>(y_SBA) && IsAligned<N>(table_S2D);
    return by_vectors ? launch.template operator()<N>() : launch.template operator()<1>();
  };
}

auto Bind(const op::Rope& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.x).dtype, [&]<class T>() { return BindRope<T>(op, binder); });
}

}  // namespace shardc::cuda
