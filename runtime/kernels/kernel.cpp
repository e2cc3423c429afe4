// Binds the body of any op: one overload of Bind a row of schemas/ops.def, found by the type that the variant holds.
#include "runtime/kernels/kernel.h"

namespace shardc {

auto BindOp(const OpBody& body, Binder& binder) -> Kernel {
  return VisitBody(body, [&](const auto& concrete) -> Kernel { return Bind(concrete, binder); });
}

}  // namespace shardc
