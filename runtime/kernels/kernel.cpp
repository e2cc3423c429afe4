// Binds the body of any op: one overload of Bind a row of schemas/ops.def, found by the type that the variant holds.
#include "runtime/kernels/kernel.h"

#include "runtime/device/family.h"
#include "runtime/kernels/host/host.h"
#include "runtime/kernels/machine/device.h"
#include "runtime/kernels/reference/reference.h"

namespace shardc {

static auto IsReference(KernelSet kernels) -> bool {
  switch (kernels) {
    case KernelSet::Fused:
    case KernelSet::Plain: return false;
    case KernelSet::Reference: return true;
  }
  CHECK(false, "kernels {}", static_cast<int>(kernels));
}

auto BindOp(const OpBody& body, Binder& binder) -> Kernel {
  const bool by_reference = IsReference(binder.plan().kernels);
  const DeviceFamily family = FactsOf(binder.plan().device).family;
  return VisitBody(body, [&]<class Body>(const Body& concrete) -> Kernel {
    if constexpr (reference::HasKernel<Body>) {
      if (by_reference) {
        return reference::Bind(concrete, binder);
      }
    }
    if constexpr (host::HasKernel<Body>) {
      return host::Bind(concrete, binder);
    } else {
      switch (family) {
        case DeviceFamily::Cpu: return cpu::Bind(concrete, binder);
        case DeviceFamily::Cuda: return PartsOf(family).bind_op(body, binder);
      }
      CHECK(false, "a device of no family");
    }
  });
}

auto ResolveDevice(Plan& plan) -> Status {
  RETURN_IF_ERROR(cpu::ResolveProcessor(plan));
  const DeviceFamily family = FactsOf(plan.device).family;
  switch (family) {
    case DeviceFamily::Cpu: return Success{};
    case DeviceFamily::Cuda:
      FAIL_IF(PartsOf(family).resolve_device == nullptr, ExitCode::Environment,
              "the plan is for {}, and this program runs plans for CPUs alone", ToText(plan.device));
      return PartsOf(family).resolve_device(plan);
  }
  CHECK(false, "a device of no family");
}

}  // namespace shardc
