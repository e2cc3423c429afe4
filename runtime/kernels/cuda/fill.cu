// fill: one constant everywhere.
#include "runtime/kernels/cuda/device_code.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

constexpr int FillThreads = 256;

template <int N, class T>
static __global__ void __launch_bounds__(FillThreads) FillKernel(T value, int64_t num_elements, T* out_N) {
  const int64_t first = (BlockX() * FillThreads + Thread()) * N;
  if (first + N <= num_elements) {
    Pack<T, N> pack;
    UNROLL
    for (int i = 0; i < N; ++i) {
      pack.elements[i] = value;
    }
    StorePack(out_N + first, pack);
  } else {
    for (int64_t i = first; i < num_elements; ++i) {
      out_N[i] = value;
    }
  }
}

template <class T>
static auto BindFill(const op::Fill& op, Binder& binder, T value) -> Kernel {
  return [stream = StreamOf(binder.queue()), out = Resolve<T>(binder, op.out),
          elements = binder.ViewOf(op.out).num_elements(), value](const Moment& moment) -> Status {
    constexpr int N = PackSize<T>;
    T* const out_N = out.At(moment);
    const auto fill = [&]<int Width>() {
      return Launch(stream, {.grid = {BlocksFor(elements, FillThreads * Width)}}, FillKernel<Width, T>, value, elements,
                    out_N);
    };
    return IsAligned<N>(out_N) ? fill.template operator()<N>() : fill.template operator()<1>();
  };
}

auto Bind(const op::Fill& op, Binder& binder) -> Kernel {
  return ForFilledType(binder.ViewOf(op.out).dtype, op.value, [&](auto value) { return BindFill(op, binder, value); });
}

}  // namespace shardc::cuda
