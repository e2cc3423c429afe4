// What kernels of every device CHECK of their operands' views when they are bound.
#pragma once

#include <type_traits>

#include "compiler/base/bfloat16.h"
#include "compiler/ops/op_support.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

template <class T>
constexpr auto DTypeOf() -> DType {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, float>) {
    return DType::F32;
  } else if constexpr (std::is_same_v<Plain, double>) {
    return DType::F64;
  } else if constexpr (std::is_same_v<Plain, BFloat16>) {
    return DType::BF16;
  } else if constexpr (std::is_same_v<Plain, int32_t>) {
    return DType::I32;
  } else {
    static_assert(std::is_same_v<Plain, int64_t>);
    return DType::I64;
  }
}

/// The view of a value. Requires: T is the value's element type.
template <class T>
auto CheckedView(Binder& binder, ValueId value) -> View {
  View view = binder.ViewOf(value);
  CHECK(view.dtype == DTypeOf<T>(), "%{} is {}, the kernel takes {}", value.index, ToText(view.dtype),
        ToText(DTypeOf<T>()));
  return view;
}

/// CHECKs that a kernel has the scratch that ScratchBytes tells.
template <class Op>
auto CheckScratch(const Op& op, const Plan& plan) -> void {
  CHECK(op.scratch.valid() && BytesOf(plan, op.scratch) >= ScratchBytes(op, plan), "{} needs {} B of scratch",
        Op::Mnemonic, ScratchBytes(op, plan).value);
}

/// CHECKs that `result` lies on the bytes of `over`.
inline auto CheckSameBytes(Binder& binder, ValueId result, ValueId over) -> void {
  const View a = binder.ViewOf(result);
  const View b = binder.ViewOf(over);
  CHECK(a.base == b.base && a.bytes_per_repeat == b.bytes_per_repeat, "%{} does not lie on %{}", result.index,
        over.index);
}

/// Returns true if an ACC field adds to what is there.
inline auto AddsOnto(Binder& binder, ValueId result, ValueId onto) -> bool {
  if (onto.valid()) {
    CheckSameBytes(binder, result, onto);
  }
  return onto.valid();
}

}  // namespace shardc
