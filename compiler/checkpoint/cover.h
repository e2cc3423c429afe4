// That the pieces of a manifest make up its tensors.
#pragma once

#include "compiler/checkpoint/manifest.h"

namespace shardc {

/// Proves that each role's pieces cover each tensor exactly once. Errors: names the tensor, the role and the elements.
auto CheckCover(const Manifest& manifest) -> Status;

}  // namespace shardc
