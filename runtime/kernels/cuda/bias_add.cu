// bias_add: y = x + bias, over x. y_NH: N rows, H columns; bias_H. A warp takes a vector of the bias for each lane, and
// adds it to some rows.
#include "runtime/kernels/cuda/device_code.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

constexpr int BiasAddThreads = 256;
constexpr int BiasAddRows = 32;

template <int N, class T>
static __global__ void __launch_bounds__(BiasAddThreads)
    BiasAddKernel(const T* bias_H, int64_t rows, int64_t columns, T* y_NH) {
  const int64_t column = (BlockY() * WarpSize + Lane()) * N;
  if (column >= columns) {
    return;
  }
  const Floats<N> bias = LoadFloats<N>(bias_H + column);
  const int64_t end = (BlockX() + 1) * BiasAddRows < rows ? (BlockX() + 1) * BiasAddRows : rows;
  for (int64_t row = BlockX() * BiasAddRows + Warp(); row < end; row += NumWarps()) {
    T* const y = y_NH + row * columns + column;
    Floats<N> sum = LoadFloats<N>(y);
    UNROLL
    for (int i = 0; i < N; ++i) {
      sum.at[i] += bias.at[i];
    }
    StoreFloats(y, sum);
  }
}

auto Bind(const op::BiasAdd& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() -> Kernel {
    CheckSameBytes(binder, op.y, op.x);
    return [stream = StreamOf(binder.queue()), bias = Resolve<const T>(binder, op.bias), y = Resolve<T>(binder, op.y),
            size = AsMatrix(binder.plan(), op.y)](const Moment& moment) -> Status {
      constexpr int N = PackSize<T>;
      const T* const bias_H = bias.At(moment);
      T* const y_NH = y.At(moment);
      const auto launch = [&]<int Width>() {
        return Launch(stream,
                      {.grid = {BlocksFor(size.rows, BiasAddRows), BlocksFor(size.columns, WarpSize * Width)},
                       .threads = BiasAddThreads},
                      BiasAddKernel<Width, T>, bias_H, size.rows, size.columns, y_NH);
      };
      const bool by_vectors = size.columns % N == 0 && IsAligned<N>(bias_H) && IsAligned<N>(y_NH);
      return by_vectors ? launch.template operator()<N>() : launch.template operator()<1>();
    };
  });
}

}  // namespace shardc::cuda
