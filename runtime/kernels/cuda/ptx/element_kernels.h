// Kernels of a GPU that make elements by init rules, one for each form of a rule: PTX that the compiler makes and the
// driver compiles. Without headers of CUDA, as tests have kernels of their own in their place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"
#include "compiler/expr/element_program.h"

/// `cudaStream_t` is a pointer to it.
struct CUstream_st;

namespace shardc::cuda {

/// Elements that a launch makes, as compiler/expr/ptx/element_ptx.h says. Pointers are to memory of the device.
struct ElementLaunch {
  const double* numbers = nullptr;
  const uint64_t* keys = nullptr;
  int64_t first = 0;
  /// A multiple of ElementsPerBlock.
  int64_t count = 0;
  float* out = nullptr;
  uint32_t* fault = nullptr;
};

/// Launches a kernel on a stream.
using LaunchElements = std::function<Status(CUstream_st*, const ElementLaunch&)>;

/// Kernels that were loaded; valid as long as this is. May be used by many threads at once.
class ElementKernels {
 public:
  ElementKernels();
  ~ElementKernels();
  ElementKernels(const ElementKernels&) = delete;
  auto operator=(const ElementKernels&) -> ElementKernels& = delete;

  struct Found {
    /// Empty if the driver compiles no PTX.
    LaunchElements launch;
    /// Time that it took to make, compile and load the kernel; 0 if it was there.
    Seconds load_time;
  };
  /// Returns the kernel of programs of this form. Requires: the program reads no tensor and has no row norms.
  /// Errors: Environment if the driver refuses the kernel.
  auto Find(const ElementProgram& program) -> ErrorOr<Found>;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace shardc::cuda
