// Kernels that compute each element of their results from the elements of their operands at the same place.
#pragma once

#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc {

/// Returns a kernel that calls `loop(count, address...)` for ranges that cover the elements, on the compute threads;
/// the addresses are those of the range in each operand.
template <class Loop, class... T>
auto BindElements(int64_t elements, const Loop& loop, const Operand<T>&... operands) -> Kernel {
  return [=](const Moment& moment) -> Status {
    ParallelRanges(elements, ElementsPerThread,
                   [&](int64_t begin, int64_t end) { loop(end - begin, operands.At(moment) + begin...); });
    return Success{};
  };
}

}  // namespace shardc
