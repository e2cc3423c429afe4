#include "runtime/kernels/cuda/bind.h"

#include "runtime/kernels/host/host.h"

namespace shardc::cuda {

auto BindAny(const OpBody& body, Binder& binder) -> Kernel {
  return VisitBody(body, [&]<class Body>(const Body& concrete) -> Kernel {
    if constexpr (host::HasKernel<Body>) {
      CHECK(false, "{} works on the host", Body::Mnemonic);
    } else {
      return cuda::Bind(concrete, binder);
    }
  });
}

}  // namespace shardc::cuda
