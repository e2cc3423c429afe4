// Kernels of fused ops that are those of other ops, one after another.
#pragma once

#include <utility>
#include <vector>

#include "compiler/ops/parts.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

/// Binds each op that it takes. Requires: no part has a value that only the parts know.
class PartsInOrder final : public PartsContext {
 public:
  explicit PartsInOrder(Binder* binder) : binder_(*binder) {}

  auto New(ValueId like, const ValueType&) -> ValueId override {
    CHECK(false, "parts with memory of their own, like %{}", like.index);
  }
  auto Emit(OpBody body) -> void override { kernels_.push_back(BindOp(body, binder_)); }
  auto Emit(OpBody body, Phase) -> void override { Emit(std::move(body)); }
  auto plan() const -> const Plan& override { return binder_.plan(); }

  auto TakeKernel() -> Kernel {
    return [kernels = std::move(kernels_)](const Moment& moment) -> Status {
      for (const Kernel& kernel : kernels) {
        RETURN_IF_ERROR(kernel(moment));
      }
      return Success{};
    };
  }

 private:
  Binder& binder_;
  std::vector<Kernel> kernels_;
};

/// Returns the kernel that runs the parts of a fused op.
template <class Op>
auto BindInParts(const Op& op, Binder& binder) -> Kernel {
  PartsInOrder parts(&binder);
  Parts(op, parts);
  return parts.TakeKernel();
}

}  // namespace shardc
