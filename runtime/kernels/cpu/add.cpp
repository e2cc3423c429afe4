// add: y = a + b, over b.
#include "runtime/kernels/cpu/operand.h"
#include "runtime/kernels/cpu/parallel.h"

namespace shardc {

template <class T>
static auto BindAdd(const op::Add& op, Binder& binder) -> Kernel {
  CheckSamePlace(binder, op.y, op.b);
  return [a = Resolve<const T>(binder, op.a), y = Resolve<T>(binder, op.y),
          elements = binder.ViewOf(op.y).num_elements()](const Moment& moment) -> Status {
    const T* const a_N = a.At(moment);
    T* const y_N = y.At(moment);
    ParallelRanges(elements, ElementsPerThread, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        y_N[i] = static_cast<T>(static_cast<float>(a_N[i]) + static_cast<float>(y_N[i]));
      }
    });
    return Success{};
  };
}

auto Bind(const op::Add& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.y).dtype, [&]<class T>() { return BindAdd<T>(op, binder); });
}

}  // namespace shardc
