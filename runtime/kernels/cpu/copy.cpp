// copy: bytes, whatever their type.
#include <cstring>

#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

auto Bind(const op::Copy& op, Binder& binder) -> Kernel {
  const View x = binder.ViewOf(op.x);
  const View y = binder.ViewOf(op.y);
  constexpr auto BytesPerThread = ElementsPerThread * static_cast<int64_t>(sizeof(float));
  return
      [from = Operand<const std::byte>(x.base, x.bytes_per_repeat), to = Operand<std::byte>(y.base, y.bytes_per_repeat),
       bytes = y.num_elements() * SizeOf(y.dtype)](const Moment& moment) -> Status {
        const std::byte* const x_N = from.At(moment);
        std::byte* const y_N = to.At(moment);
        ParallelRanges(bytes, BytesPerThread, [&](int64_t begin, int64_t end) {
          std::memcpy(y_N + begin, x_N + begin, static_cast<size_t>(end - begin));
        });
        return Success{};
      };
}

}  // namespace shardc::cpu
