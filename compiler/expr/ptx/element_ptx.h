// The code of what elements are for NVIDIA's processors, of the same intermediate representation as the host's: the
// same bits, as nothing is fused, division and roots are rounded once, and small numbers are kept.
#pragma once

#include <string>
#include <string_view>

#include "compiler/expr/element_program.h"

namespace shardc {

/// Elements that a thread makes.
constexpr int64_t ElementsPerThread = ElementsPerBlock;

/// Returns PTX with the kernel `elements`, for a one-dimensional grid of `threads` threads or more. All of its
/// parameters have 8 bytes, and the pointers are to memory of the device:
///   const double* numbers    program.numbers
///   const uint64_t* keys     the two words of each of program.keys
///   const float* loaded      loaded[l * 4 * threads + i] is what loads[l] reads for element first + i; never read if
///                            the program has no loads
///   int64_t first            a multiple of ElementsPerBlock
///   int64_t threads          thread t makes elements first + 4 t ... first + 4 t + 3
///   float* out               they go to out[4 t ... 4 t + 3], rounded to float; of an element without a value anything
///   uint32_t* fault          gets 1 if one of all these elements has no value, those past the parameter's end included
/// The kernel is the same for all programs of one Shape(). `processor` is LLVM's name of it: "sm_90".
/// Requires: the program has no row norms, or numbers holds those of the one row that is made.
auto ElementPtx(const ElementProgram& program, std::string_view processor) -> std::string;

}  // namespace shardc
