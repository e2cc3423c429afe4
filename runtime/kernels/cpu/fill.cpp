// fill: one constant everywhere.
#include <algorithm>

#include "runtime/kernels/cpu/operand.h"
#include "runtime/kernels/cpu/parallel.h"

namespace shardc::cpu {

template <class T>
static auto BindFill(const op::Fill& op, Binder& binder, T value) -> Kernel {
  const int64_t elements = binder.ViewOf(op.out).num_elements();
  return [out = Resolve<T>(binder, op.out), elements, value](const Moment& moment) -> Status {
    T* const first = out.At(moment);
    ParallelRanges(elements, ElementsPerThread,
                   [&](int64_t begin, int64_t end) { std::fill(first + begin, first + end, value); });
    return Success{};
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
      Store(value, static_cast<float>(op.value));
      return BindFill(op, binder, value);
    }
    case DType::F16: break;
  }
  CHECK(false, "fill of a type that is none");
}

}  // namespace shardc::cpu
