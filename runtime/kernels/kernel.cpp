// Binds the body of any op: one overload of Bind a row of schemas/ops.def, found by the type that the variant holds.
#include "runtime/kernels/kernel.h"

#include "runtime/kernels/reference/reference.h"

namespace shardc {

static auto IsReference(KernelSet kernels) -> bool {
  switch (kernels) {
    case KernelSet::Fused: return false;
    case KernelSet::Reference: return true;
  }
  CHECK(false, "kernels {}", static_cast<int>(kernels));
}

auto BindOp(const OpBody& body, Binder& binder) -> Kernel {
  const bool by_reference = IsReference(binder.plan().kernels);
  return VisitBody(body, [&]<class Body>(const Body& concrete) -> Kernel {
    if constexpr (reference::HasKernel<Body>) {
      if (by_reference) {
        return reference::Bind(concrete, binder);
      }
    }
    return Bind(concrete, binder);
  });
}

}  // namespace shardc
