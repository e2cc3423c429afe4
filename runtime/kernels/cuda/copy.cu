// copy: bytes, whatever their type.
#include "runtime/kernels/cuda/device_code.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

constexpr int CopyThreads = 256;

/// Bytes of an element of up to 16 bytes.
template <class Element>
static __global__ void __launch_bounds__(CopyThreads)
    CopyKernel(const Element* x_N, int64_t num_elements, Element* y_N) {
  const int64_t i = BlockX() * CopyThreads + Thread();
  if (i < num_elements) {
    y_N[i] = x_N[i];
  }
}

auto Bind(const op::Copy& op, Binder& binder) -> Kernel {
  const View x = binder.ViewOf(op.x);
  const View y = binder.ViewOf(op.y);
  return [stream = StreamOf(binder.queue()), x, y,
          bytes = y.num_elements() * SizeOf(y.dtype)](const Moment& moment) -> Status {
    const auto copy = [&]<class Element>() {
      const int64_t elements = bytes / static_cast<int64_t>(sizeof(Element));
      return Launch(stream, {.grid = {BlocksFor(elements, CopyThreads)}}, CopyKernel<Element>,
                    x.At<const Element>(moment), elements, y.At<Element>(moment));
    };
    using Line = Pack<uint32_t, 4>;
    const bool by_lines = bytes % static_cast<int64_t>(sizeof(Line)) == 0 &&
                          IsAligned<4>(x.At<const uint32_t>(moment)) && IsAligned<4>(y.At<uint32_t>(moment));
    return by_lines ? copy.template operator()<Line>() : copy.template operator()<uint16_t>();
  };
}

}  // namespace shardc::cuda
