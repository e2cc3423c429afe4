// initialize on the device: kernels of init rules make elements in scratch, as f32, and a kernel stores them in the
// parameter's type and sums them. The host's kernel of the op does the rest: rules that read tensors of a seed or norms
// of rows, and elements without a value, of which it says what they are.
#pragma once

#include <functional>

#include "runtime/kernels/kernel.h"

namespace shardc::cuda {

/// Binds what the device does of the op. The result returns false where the op is left to the host's kernel.
/// `of_kernels` and `of_host` are one binder, or one that gives the memory that kernels see at the addresses of the
/// other.
auto BindInitialize(const op::Initialize& op, Binder& of_kernels, Binder& of_host)
    -> std::function<ErrorOr<bool>(const Moment&)>;

}  // namespace shardc::cuda
