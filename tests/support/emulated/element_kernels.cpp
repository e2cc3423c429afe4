// Kernels of init rules for the emulated device: the host's, on the memory that the device's kernels see.
#include "runtime/kernels/cuda/ptx/element_kernels.h"

#include <algorithm>
#include <array>

#include "compiler/base/stopwatch.h"
#include "runtime/init/initial_values.h"

namespace shardc::cuda {

class ElementKernels::State {
 public:
  auto Find(const ElementProgram& program) -> Found {
    const Stopwatch watch;
    const int before = kernels_->num_kernels();
    const ElementKernel kernel = kernels_->Kernel(program);
    const auto launch = [kernel, kernels = kernels_](CUstream_st*, const ElementLaunch& asked) -> Status {
      const int64_t per_pass = kernel.elements_per_pass;
      const auto run = [&](int64_t first, int64_t passes, float* out) {
        if (kernel.run(asked.numbers, asked.keys, nullptr, first, passes, out) != 0) {
          *asked.fault = 1;
        }
      };
      const int64_t whole = asked.count / per_pass;
      run(asked.first, whole, asked.out);
      if (const int64_t rest = asked.count - whole * per_pass; rest > 0) {
        // Elements past the end count in `fault`, as those of the last thread of a GPU do.
        std::array<float, MostElementsPerPass> buffer{};
        run(asked.first + whole * per_pass, 1, buffer.data());
        std::copy_n(buffer.begin(), rest, asked.out + whole * per_pass);
      }
      return Success{};
    };
    return {.launch = launch, .load_time = kernels_->num_kernels() == before ? Seconds{} : watch.Elapsed()};
  }

 private:
  std::shared_ptr<ElementJit> kernels_ = SharedInitKernels();
};

ElementKernels::ElementKernels() : state_(std::make_unique<State>()) {}
ElementKernels::~ElementKernels() = default;

auto ElementKernels::Find(const ElementProgram& program) -> ErrorOr<Found> { return state_->Find(program); }

}  // namespace shardc::cuda
