// An ElementProgram as a function of LLVM's intermediate representation.
#pragma once

#include <llvm/IR/Module.h>

#include <set>
#include <string>

#include "compiler/expr/element_program.h"

namespace shardc {

/// The processor that code runs on, and how many elements one pass of it makes.
struct KernelTarget {
  /// A multiple of ElementsPerBlock.
  int lanes = 32;
  /// A thread for each pass, instead of a loop over them, and all that it does written out. Without them the longer
  /// functions and random words are called, so that they are compiled once for all kernels.
  bool has_threads = false;
};

/// Adds to `module` the function
///   name(const double* numbers, const uint64_t* keys, const float* loaded, int64_t first, int64_t passes, T* out)
///       -> uint64_t
/// which writes the values of instruction `root` at elements first ... first + passes * lanes - 1 to `out`, as floats
/// or doubles, and returns whether any had a fault. keys has two words a stream, and loaded[l * passes * lanes + i] is
/// what loads[l] of the program reads for element first + i. With threads it returns nothing, writes 1 to a last
/// argument uint32_t* fault instead, and is a kernel of a one-dimensional grid. Requires: `first` is a multiple of
/// ElementsPerBlock.
auto AddKernel(llvm::Module& module, const std::string& name, const ElementProgram& program, int root, bool as_double,
               KernelTarget target) -> llvm::Function*;

/// Adds the functions that a module's kernels call, but for those in `known`, which it grows by what it adds: a module
/// may call those of another.
auto AddCalled(llvm::Module& module, std::set<std::string>* known) -> void;

}  // namespace shardc
