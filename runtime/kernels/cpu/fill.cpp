// fill: one constant everywhere.
#include <algorithm>

#include "runtime/kernels/cpu/operand.h"
#include "runtime/kernels/cpu/parallel.h"

namespace shardc {

template <class T>
static auto BindFill(const op::Fill& op, Binder& binder) -> Kernel {
  const int64_t elements = binder.ViewOf(op.out).num_elements();
  return
      [out = Resolve<T>(binder, op.out), elements, value = static_cast<T>(op.value)](const Moment& moment) -> Status {
        T* const first = out.At(moment);
        ParallelRanges(elements, ElementsPerThread,
                       [&](int64_t begin, int64_t end) { std::fill(first + begin, first + end, value); });
        return Success{};
      };
}

auto Bind(const op::Fill& op, Binder& binder) -> Kernel {
  const DType dtype = binder.ViewOf(op.out).dtype;
  switch (dtype) {
    case DType::F32: return BindFill<float>(op, binder);
    case DType::F64: return BindFill<double>(op, binder);
    case DType::I32: return BindFill<int32_t>(op, binder);
    case DType::I64: return BindFill<int64_t>(op, binder);
    case DType::BF16: break;
  }
  CHECK(false, "fill of {}", ToText(dtype));
}

}  // namespace shardc
