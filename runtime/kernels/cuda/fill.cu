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
  switch (binder.ViewOf(op.out).dtype) {
    case DType::F32: return BindFill(op, binder, static_cast<float>(op.value));
    case DType::F64: return BindFill(op, binder, op.value);
    case DType::I32: return BindFill(op, binder, static_cast<int32_t>(op.value));
    case DType::I64: return BindFill(op, binder, static_cast<int64_t>(op.value));
    case DType::BF16: {
      BFloat16 value{};
      shardc::Store(value, static_cast<float>(op.value));
      return BindFill(op, binder, value);
    }
    case DType::F16: break;
  }
  CHECK(false, "fill of a type that is none");
}

}  // namespace shardc::cuda
