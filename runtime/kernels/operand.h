// Operands of kernels: views with their element type checked, small enough to live in a closure.
//
// Verify has proved shapes and dtypes of the plan; what is CHECKed here is that the kernel that was bound is the one
// for these types. Kernels are templates over the element type of activations.
#pragma once

#include <type_traits>

#include "runtime/kernels/view_checks.h"

namespace shardc {

/// The address of a value's elements at a moment; null if it was made without a value.
template <class T>
class Operand {
 public:
  Operand() = default;
  Operand(std::byte* base, int64_t bytes_per_repeat) : base_(base), bytes_per_repeat_(bytes_per_repeat) {}

  auto At(const Moment& moment) const -> T* { return reinterpret_cast<T*>(base_ + bytes_per_repeat_ * moment.repeat); }

 private:
  std::byte* base_ = nullptr;
  int64_t bytes_per_repeat_ = 0;
};

/// Returns the operand of a value. Requires: T is the value's element type.
template <class T>
auto Resolve(Binder& binder, ValueId value) -> Operand<T> {
  const View view = CheckedView<T>(binder, value);
  return {view.base, view.bytes_per_repeat};
}

/// Returns the operand of a value, or one whose address is null if the op has no such value.
template <class T>
auto ResolveIfSet(Binder& binder, ValueId value) -> Operand<T> {
  return value.valid() ? Resolve<T>(binder, value) : Operand<T>{};
}

/// Returns a kernel that calls `compute` with the addresses of the operands at its moment. What returns nothing does
/// not fail.
template <class Compute, class... T>
auto BindOver(Compute compute, const Operand<T>&... operands) -> Kernel {
  return [=](const Moment& moment) mutable -> Status {
    if constexpr (std::is_void_v<std::invoke_result_t<Compute&, T*...>>) {
      compute(operands.At(moment)...);
      return Success{};
    } else {
      return compute(operands.At(moment)...);
    }
  };
}

/// Calls `make` with the C++ type of the activations' dtype.
template <class Make>
auto ForElementType(DType dtype, const Make& make) -> Kernel {
  switch (dtype) {
    case DType::F32: return make.template operator()<float>();
    case DType::BF16: return make.template operator()<BFloat16>();
    case DType::F64:
    case DType::I32:
    case DType::I64:
    case DType::F16: break;
  }
  CHECK(false, "no kernel computes in {}", ToText(dtype));
}

/// Calls `make` with the C++ types of the activations and of the residual stream: the same, or bf16 and f32.
template <class Make>
auto ForResidualTypes(DType dtype, DType residual, const Make& make) -> Kernel {
  return ForElementType(dtype, [&]<class T>() -> Kernel {
    if (residual == DTypeOf<T>()) {
      return make.template operator()<T, T>();
    }
    CHECK(residual == DType::F32, "no kernel computes in {} with a residual stream in {}", ToText(dtype),
          ToText(residual));
    return make.template operator()<T, float>();
  });
}

/// Calls `make` with the value in the type of the elements that are filled with it.
template <class Make>
auto ForFilledType(DType dtype, double value, const Make& make) -> Kernel {
  switch (dtype) {
    case DType::F32: return make(static_cast<float>(value));
    case DType::F64: return make(value);
    case DType::I32: return make(static_cast<int32_t>(value));
    case DType::I64: return make(static_cast<int64_t>(value));
    case DType::BF16: {
      BFloat16 rounded{};
      Store(rounded, static_cast<float>(value));
      return make(rounded);
    }
    case DType::F16: break;
  }
  CHECK(false, "fill of a type that is none");
}

}  // namespace shardc
