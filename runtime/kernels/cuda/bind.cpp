#include "runtime/kernels/cuda/bind.h"

#include "compiler/ops/cuda/attention.h"
#include "runtime/kernels/cuda/cudnn/bind_sdpa.h"
#include "runtime/kernels/host/host.h"

namespace shardc::cuda {

/// Ops that cuDNN does where it takes their types and sizes.
template <class Body>
concept MayBeSdpa = requires(const Body& body, Binder& binder) {
  BindSdpa(body, binder);
};

auto BindAny(const OpBody& body, Binder& binder) -> Kernel {
  return VisitBody(body, [&]<class Body>(const Body& concrete) -> Kernel {
    if constexpr (MayBeSdpa<Body>) {
      if (CudaAttentionOf(binder.plan(), concrete.q, concrete.k, concrete.starts, concrete.head_dim).by_cudnn()) {
        return BindSdpa(concrete, binder);
      }
    }
    if constexpr (host::HasKernel<Body>) {
      CHECK(false, "{} works on the host", Body::Mnemonic);
    } else {
      return cuda::Bind(concrete, binder);
    }
  });
}

}  // namespace shardc::cuda
