// NCCL, of the library that is loaded when it is first asked for: a run on the GPUs of one host needs none, and its
// kernels would take memory of each GPU.
#pragma once

#include "runtime/comm/nccl/nccl_api.h"

namespace shardc {

auto NcclLibrary() -> NcclApi&;

}  // namespace shardc
