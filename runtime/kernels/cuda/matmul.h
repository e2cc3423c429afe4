// Products of ops, by cuBLASLt.
#pragma once

#include "runtime/kernels/kernel.h"

namespace shardc::cuda {

/// Binds out = op(a) op(b), plus the value `added` if it is valid, which has out's type and shape and may lie
/// elsewhere.
auto BindProduct(const op::Matmul& op, ValueId added, Binder& binder) -> Kernel;

}  // namespace shardc::cuda
