// Machine code for what elements are, made by LLVM for the processor at hand.
#pragma once

#include <cstdint>
#include <memory>

#include "compiler/expr/element_program.h"

namespace shardc {

constexpr int64_t MostElementsPerPass = 32;

struct ElementKernel {
  /// Elements that one pass makes, MostElementsPerPass or fewer: a multiple of ElementsPerBlock.
  int64_t elements_per_pass = 0;
  /// Writes the elements first ... first + passes * elements_per_pass - 1 to `out`, rounded to float, or as doubles
  /// where the kernel was made for them; of an element with a fault anything. Returns: whether any had one. Requires:
  /// `first` is a multiple of ElementsPerBlock; numbers and keys are those of a program of the kernel's shape, and
  /// `loaded` holds, for each of its loads in turn, what it reads for all these elements.
  uint64_t (*run)(const double* numbers, const uint64_t* keys, const float* loaded, int64_t first, int64_t passes,
                  void* out) = nullptr;

  friend auto operator==(const ElementKernel&, const ElementKernel&) -> bool = default;
};

/// Kernels, one for each shape of programs, made when they are asked for; valid as long as this is. May be used by many
/// threads at once.
class ElementJit {
 public:
  ElementJit();
  ~ElementJit();
  ElementJit(const ElementJit&) = delete;
  auto operator=(const ElementJit&) -> ElementJit& = delete;

  /// Returns the kernel of the program's value.
  auto Kernel(const ElementProgram& program) -> ElementKernel;
  /// Returns the kernel of another of its instructions, which gives doubles.
  auto KernelOfDoubles(const ElementProgram& program, int root) -> ElementKernel;

  /// Returns how many kernels were made.
  auto num_kernels() const -> int;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace shardc
