// The code of what elements are for NVIDIA's processors, of the same intermediate representation as the host's: the
// same bits, as nothing is fused, division and roots are rounded once, and small numbers are kept.
#pragma once

#include <string>
#include <string_view>

#include "compiler/expr/element_program.h"

namespace shardc {

/// Elements that a thread makes.
constexpr int64_t ElementsPerThread = ElementsPerBlock;

/// Returns PTX with the kernel
///   elements(const double* numbers, const uint64_t* keys, int64_t first, int64_t threads, float* out, uint32_t* fault)
/// for a one-dimensional grid of `threads` threads or more: thread t writes elements first + 4 t ... first + 4 t + 3 to
/// out[4 t ...], and 1 to `fault` if one has no value. `processor` is LLVM's name of it: "sm_90".
/// Requires: `first` is a multiple of ElementsPerBlock.
auto ElementPtx(const ElementProgram& program, std::string_view processor) -> std::string;

}  // namespace shardc
