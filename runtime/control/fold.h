// Sums of the terms that ranks give to a collective: left folds in the order of the ranks, first over those of each
// host, then over the hosts. All communicators sum by this function, so that they give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/plan/types.h"

namespace shardc {

/// Types of the terms and of their sum.
struct ReduceTypes {
  DType terms = DType::F32;
  DType sum = DType::F32;
};

/// Computes out (+)= the sum of `terms`, each of `num_elements`. `per_host` of them, in turn, come from one host. It
/// sums in fp32 (f64 and i64 in their own type) and rounds once. `out` may be one of the terms. Requires: the types are
/// F32, F64, I64 or BF16, the same for both, or BF16 and F32.
auto Fold(const std::vector<const std::byte*>& terms, size_t per_host, std::byte* out, int64_t num_elements,
          ReduceTypes types, bool accumulate) -> void;

}  // namespace shardc
