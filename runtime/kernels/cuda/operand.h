// Operands of kernels of the CUDA family: what a launch asks of them beyond runtime/kernels/operand.h.
#pragma once

#include <initializer_list>

#include "runtime/device/cuda/stream.h"
#include "runtime/kernels/cuda/device_code.h"
#include "runtime/kernels/operand.h"

namespace shardc::cuda {

/// Returns the scratch of an op, as elements of any type. CHECKs that it is as large as ScratchBytes says.
template <class T, class Op>
auto ScratchOf(const Op& op, Binder& binder) -> Operand<T> {
  CheckScratch(op, binder.plan());
  const View view = binder.ViewOf(op.scratch);
  return {view.base, view.bytes_per_repeat};
}

/// Returns true if all rows of `columns` elements of these values may be read and written in vectors of N.
template <int N>
auto HasRowsOfPacks(Binder& binder, int64_t columns, std::initializer_list<ValueId> values) -> bool {
  return columns % N == 0 && std::ranges::all_of(values, [&](ValueId value) {
           const View view = binder.ViewOf(value);
           const int64_t bytes = std::min<int64_t>(16, N * SizeOf(view.dtype));
           return reinterpret_cast<uintptr_t>(view.base) % static_cast<uintptr_t>(bytes) == 0 &&
                  view.bytes_per_repeat % bytes == 0;
         });
}

}  // namespace shardc::cuda
