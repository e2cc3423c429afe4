// fill: one constant everywhere.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"
#include "runtime/memory/arenas.h"

namespace shardc::cpu {

/// Clears private memory. Whole pages of it take no memory until something is written to them.
static auto Clear(std::byte* first, int64_t bytes) -> void {
  const auto address = reinterpret_cast<int64_t>(first);
  const int64_t begin = RoundUp(address, PageSize()) - address;
  const int64_t end = (address + bytes) / PageSize() * PageSize() - address;
  if (begin < end && madvise(first + begin, static_cast<size_t>(end - begin), MADV_DONTNEED) == 0) {
    std::memset(first, 0, static_cast<size_t>(begin));
    std::memset(first + end, 0, static_cast<size_t>(bytes - end));
  } else {
    std::memset(first, 0, static_cast<size_t>(bytes));
  }
}

template <class T>
static auto BindFill(const op::Fill& op, Binder& binder, T value) -> Kernel {
  const int64_t elements = binder.ViewOf(op.out).num_elements();
  const auto out = Resolve<T>(binder, op.out);
  const Buffer& buffer = binder.plan().buffers[binder.plan().values[op.out].buffer];
  // A first start clears moments, and the first step writes to them.
  if (op.value == 0 && buffer.category == Category::Moments && !IsShared(buffer.arena)) {
    return [out, elements](const Moment& moment) -> Status {
      Clear(reinterpret_cast<std::byte*>(out.At(moment)), elements * int64_t{sizeof(T)});
      return Success{};
    };
  }
  return [out, elements, value](const Moment& moment) -> Status {
    T* const first = out.At(moment);
    ParallelRanges(elements, ElementsPerThread,
                   [&](int64_t begin, int64_t end) { std::fill(first + begin, first + end, value); });
    return Success{};
  };
}

auto Bind(const op::Fill& op, Binder& binder) -> Kernel {
  return ForFilledType(binder.ViewOf(op.out).dtype, op.value, [&](auto value) { return BindFill(op, binder, value); });
}

}  // namespace shardc::cpu
