#include "runtime/cuda/parts.h"

#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/family.h"
#include "runtime/kernels/cuda/bind.h"

namespace shardc {

auto UseCuda() -> void {
  static constexpr FamilyParts Parts{
      .resolve_device = ResolveCudaDevice, .make_device = CudaDevice::Create, .bind_op = cuda::BindAny};
  SetParts(DeviceFamily::Cuda, &Parts);
}

}  // namespace shardc
