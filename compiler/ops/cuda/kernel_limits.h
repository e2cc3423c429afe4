// Sizes that the kernels of the family Cuda take at most. A launch has a bounded number of blocks along each of its
// dims, and cuBLASLt takes sizes of 31 bits. The bounds are those of the narrowest blocks that a kernel may choose, so
// they do not depend on how operands are aligned.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/plan/plan.h"

namespace shardc {

/// A size of an op that its kernel does not take.
struct KernelLimit {
  /// "sequences".
  std::string_view what;
  int64_t size = 0;
  int64_t most = 0;
};

/// Returns the first such size; nothing on devices of other families. Requires: the constraints of the op hold.
auto FindKernelLimit(const OpBody& body, const Plan& plan) -> std::optional<KernelLimit>;

}  // namespace shardc
