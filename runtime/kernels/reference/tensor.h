// Values of the plan as LibTorch tensors.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

// c10's logging has a CHECK of its own; this header comes before all that use ours.
#undef CHECK

#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"
#include "runtime/kernels/reference/reference.h"

namespace shardc::reference {

inline auto ToScalarType(DType dtype) -> at::ScalarType {
  switch (dtype) {
    case DType::F32: return at::kFloat;
    case DType::BF16: return at::kBFloat16;
    case DType::F64: return at::kDouble;
    case DType::I32: return at::kInt;
    case DType::I64: return at::kLong;
    case DType::F16: return at::kHalf;
  }
  CHECK(false, "a dtype that is none");
}

/// A value. Each moment makes a tensor over its bytes.
class Elements {
 public:
  Elements(Binder& binder, ValueId value) : view_(binder.ViewOf(value)) {}

  /// Over the bytes of the value, in its type.
  auto InPlace(const Moment& moment) const -> at::Tensor {
    return at::from_blob(view_.At<std::byte>(moment), view_.shape, at::TensorOptions(ToScalarType(view_.dtype)));
  }
  /// A copy in f64.
  auto Read(const Moment& moment) const -> at::Tensor {
    return InPlace(moment).to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  }
  /// A copy in f64, as a matrix of the leading dims by the last.
  auto ReadRows(const Moment& moment) const -> at::Tensor {
    return Read(moment).reshape({-1, view_.shape.empty() ? 1 : view_.shape.back()});
  }
  /// A copy of indices.
  auto ReadIndices(const Moment& moment) const -> at::Tensor { return InPlace(moment).to(at::kLong).reshape({-1}); }
  /// Rounds to the type of the value; `adds`: to the sum of `elements` and what is there.
  auto Write(const Moment& moment, const at::Tensor& elements, bool adds = false) const -> void {
    const at::Tensor shaped = elements.reshape(view_.shape);
    InPlace(moment).copy_(adds ? Read(moment).add(shaped) : shaped);
  }

  auto shape() const -> const Dims& { return view_.shape; }
  auto num_elements() const -> int64_t { return view_.num_elements(); }

 private:
  View view_;
};

/// The kernel that calls compute(moment), without LibTorch's bookkeeping for gradients.
template <class Compute>
auto MakeKernel(Compute compute) -> Kernel {
  return [compute = std::move(compute)](const Moment& moment) -> Status {
    const c10::InferenceMode inference;
    // A setting of the calling thread. Without it every rank would take all cores.
    if (at::get_num_threads() != ComputeThreads()) {
      at::set_num_threads(static_cast<int>(ComputeThreads()));
    }
    if constexpr (std::is_void_v<decltype(compute(moment))>) {
      compute(moment);
      return Success{};
    } else {
      return compute(moment);
    }
  };
}

}  // namespace shardc::reference
