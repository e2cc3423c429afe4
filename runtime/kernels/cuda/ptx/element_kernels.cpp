#include "runtime/kernels/cuda/ptx/element_kernels.h"

#include <array>
#include <map>
#include <mutex>
#include <string>

#include "compiler/base/stopwatch.h"
#include "compiler/expr/ptx/element_ptx.h"
#include "runtime/device/cuda/cuda_error.h"

namespace shardc::cuda {

/// Launches the kernel `elements` of a library.
static auto Launch(cudaKernel_t kernel, CUstream_st* stream, ElementLaunch launch) -> Status {
  constexpr int64_t ThreadsPerBlock = 256;
  const float* loaded = nullptr;
  int64_t threads = launch.count / ElementsPerThread;
  const int64_t blocks = CeilDiv(threads, ThreadsPerBlock);
  CHECK(launch.count % ElementsPerThread == 0 && launch.first % ElementsPerBlock == 0 && blocks <= INT32_MAX,
        "{} elements from {}", launch.count, launch.first);
  if (blocks == 0) {
    return Success{};
  }
  std::array<void*, 7> parameters{&launch.numbers, &launch.keys, &loaded,      &launch.first,
                                  &threads,        &launch.out,  &launch.fault};
  return CudaStatus(cudaLaunchKernel(static_cast<const void*>(kernel), dim3(static_cast<unsigned>(blocks)),
                                     dim3(static_cast<unsigned>(ThreadsPerBlock)), parameters.data(), 0, stream),
                    "launching the kernel of an init rule");
}

/// PTX as the driver has compiled it.
class LoadedPtx {
 public:
  LoadedPtx() = default;
  LoadedPtx(const LoadedPtx&) = delete;
  auto operator=(const LoadedPtx&) -> LoadedPtx& = delete;
  ~LoadedPtx() {
    if (library_ != nullptr) {
      cudaLibraryUnload(library_);
    }
  }

  /// Leaves kernel() null if the driver compiles no PTX.
  auto Load(const std::string& ptx) -> Status {
    std::array<char, 4096> log{};
    std::array options{cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
    std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
    const cudaError_t loaded = cudaLibraryLoadData(&library_, ptx.c_str(), options.data(), values.data(),
                                                   static_cast<unsigned>(options.size()), nullptr, nullptr, 0);
    cudaFuncAttributes attributes{};
    for (const cudaError_t code : {loaded, loaded != cudaSuccess ? loaded : Take(&attributes)}) {
      if (code == cudaErrorJitCompilerNotFound || code == cudaErrorJitCompilationDisabled) {
        kernel_ = nullptr;
        // The next call of the runtime would else report the error.
        cudaGetLastError();
        return Success{};
      }
      RETURN_IF_ERROR(CudaStatus(code, fmt::format("compiling the kernel of an init rule: {}", log.data())));
    }
    return Success{};
  }

  auto kernel() const -> cudaKernel_t { return kernel_; }

 private:
  /// Finds the kernel. A library that is loaded lazily is compiled when something is asked of its kernel.
  auto Take(cudaFuncAttributes* attributes) -> cudaError_t {
    const cudaError_t found = cudaLibraryGetKernel(&kernel_, library_, "elements");
    return found != cudaSuccess ? found : cudaFuncGetAttributes(attributes, static_cast<const void*>(kernel_));
  }

  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
};

class ElementKernels::State {
 public:
  auto Find(const ElementProgram& program) -> ErrorOr<Found> {
    const std::lock_guard lock(mutex_);
    const Stopwatch watch;
    const auto [loaded, is_new] = loaded_.try_emplace(program.Shape());
    if (is_new) {
      RETURN_IF_ERROR(loaded->second.Load(ElementPtx(program, "sm_90")));
    }
    const cudaKernel_t kernel = loaded->second.kernel();
    Found found{.launch = {}, .load_time = is_new ? watch.Elapsed() : Seconds{}};
    if (kernel != nullptr) {
      found.launch = [kernel](CUstream_st* stream, const ElementLaunch& launch) {
        return Launch(kernel, stream, launch);
      };
    }
    return found;
  }

 private:
  std::mutex mutex_;
  /// By the shape of their programs.
  std::map<std::string, LoadedPtx> loaded_;
};

ElementKernels::ElementKernels() : state_(std::make_unique<State>()) {}
ElementKernels::~ElementKernels() = default;

auto ElementKernels::Find(const ElementProgram& program) -> ErrorOr<Found> { return state_->Find(program); }

}  // namespace shardc::cuda
