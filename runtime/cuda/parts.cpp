#include "runtime/cuda/parts.h"

#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/family.h"
#include "runtime/kernels/cuda/bind.h"
#include "runtime/kernels/cuda/finite.h"
#include "runtime/kernels/cuda/initial_values.h"

namespace shardc {

auto UseCuda() -> void {
  static constexpr FamilyParts Parts{
      .resolve_device = ResolveCudaDevice,
      .make_device = CudaDevice::Create,
      .bind_op = cuda::BindAny,
      .bind_initialize = [](const auto& op, Binder& binder) { return cuda::BindInitialize(op, binder, binder); },
      .are_finite = [](ValueId value, Binder& binder) { return cuda::AreFinite(value, binder, binder); }};
  SetParts(DeviceFamily::Cuda, &Parts);
}

}  // namespace shardc
