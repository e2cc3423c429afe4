// Looks for elements that are not finite where they are: what all of the state is searched for when it is loaded takes
// milliseconds on the device, and seconds on the host.
#pragma once

#include "runtime/kernels/kernel.h"

namespace shardc::cuda {

/// Returns true if all elements of a value of floats are finite. Between sections, when all queues are empty.
/// `of_kernels` and `of_host` are one binder, or one that gives the memory that kernels see at the addresses of the
/// other.
auto AreFinite(ValueId value, Binder& of_kernels, Binder& of_host) -> ErrorOr<bool>;

}  // namespace shardc::cuda
