// The products of LibTorch itself, to measure ours against.
#pragma once

#include <cstdint>

#include "compiler/plan/types.h"

namespace shardc {

/// c (m x n) = op(a) op(b) by mm_out, in f32 or bf16, on one thread.
auto LibraryGemm(DType dtype, int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, void* a, void* b,
                 void* c) -> void;

}  // namespace shardc
