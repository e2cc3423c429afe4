#include "runtime/cuda/parts.h"

#include "runtime/comm/cuda/cuda_engine.h"
#include "runtime/comm/cuda/nccl_library.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_graphs.h"
#include "runtime/device/cuda/versions.h"
#include "runtime/device/family.h"
#include "runtime/kernels/cuda/bind.h"
#include "runtime/kernels/cuda/cublas/product.h"
#include "runtime/kernels/cuda/cudnn/sdpa.h"
#include "runtime/kernels/cuda/digest.h"
#include "runtime/kernels/cuda/finite.h"
#include "runtime/kernels/cuda/initial_values.h"
#include "runtime/kernels/cuda/product_bench.h"

namespace shardc {

static auto LibraryVersions() -> std::map<std::string, std::string> {
  return {{"cublaslt", LibraryVersionText(cuda::Product::LibraryVersion())},
          {"cudnn", LibraryVersionText(cuda::SdpaPlan::LibraryVersion())}};
}

static auto Versions() -> std::map<std::string, std::string> {
  std::map<std::string, std::string> versions = CudaVersions();
  versions.merge(LibraryVersions());
  return versions;
}

static auto Resolve(Plan& plan) -> Status {
  return ResolveCudaDevice(plan, [] { static_cast<void>(LibraryVersions()); });
}

auto UseCuda() -> void {
  static constexpr FamilyParts Parts{
      .resolve_device = Resolve,
      .make_device = CudaDevice::Create,
      .make_engine = MakeCudaEngine,
      .nccl = NcclLibrary,
      .bind_op = cuda::BindAny,
      .bind_initialize = [](const auto& op, Binder& binder) { return cuda::BindInitialize(op, binder, binder); },
      .are_finite = [](ValueId value, Binder& binder) { return cuda::AreFinite(value, binder, binder); },
      .digests = [](auto parts, Binder& binder) { return cuda::DigestsOf(parts, binder, binder); },
      .make_product_bench = cuda::MakeProductBench,
      .make_launch_graphs = MakeCudaGraphs,
      .versions = Versions};
  SetParts(DeviceFamily::Cuda, &Parts);
}

}  // namespace shardc
