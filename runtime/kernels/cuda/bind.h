// The kernels of the family Cuda, by the op that a variant holds.
#pragma once

#include "runtime/kernels/kernel.h"

namespace shardc::cuda {

/// Requires: the op has no kernel of the host.
auto BindAny(const OpBody& body, Binder& binder) -> Kernel;

}  // namespace shardc::cuda
