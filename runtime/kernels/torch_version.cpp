#include "runtime/kernels/torch_version.h"

#include <torch/version.h>

namespace shardc {

auto TorchVersion() -> std::string_view { return TORCH_VERSION; }

}  // namespace shardc
