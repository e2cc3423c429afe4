// matmul: one product of cuBLASLt over operands seen as matrices, leading dims by the last.
#include "runtime/kernels/cuda/matmul.h"

#include <algorithm>
#include <bit>

#include "compiler/ops/op_support.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/kernels/cuda/cublas/product.h"
#include "runtime/kernels/view_checks.h"

namespace shardc::cuda {

/// Returns the bytes, 256 at most, that divide the view's address at each moment.
static auto AlignmentOf(const View& view) -> uint32_t {
  const auto bits = reinterpret_cast<uintptr_t>(view.base) | static_cast<uintptr_t>(view.bytes_per_repeat) | 256;
  return uint32_t{1} << std::countr_zero(bits);
}

auto BindProduct(const op::Matmul& op, ValueId added, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  const View a = binder.ViewOf(op.a);
  const View b = binder.ViewOf(op.b);
  const View x = binder.ViewOf(added.valid() ? added : op.out);
  const View out = binder.ViewOf(op.out);
  const View scratch = binder.ViewOf(op.scratch);
  CheckScratch(op, plan);
  ErrorOr<std::shared_ptr<const Product>> made = Product::Make(
      {.problem = GemmProblemOf(op, plan),
       .adds = added.valid(),
       .alignment = {.a = AlignmentOf(a), .b = AlignmentOf(b), .c = std::min(AlignmentOf(x), AlignmentOf(out))},
       .scratch_bytes = scratch.num_elements() * SizeOf(scratch.dtype)},
      binder.algorithms());
  if (!made) {
    return [error = made.error()](const Moment&) -> Status { return error; };
  }
  return [=, product = *made, stream = StreamOf(binder.queue())](const Moment& moment) -> Status {
    return product->Run(stream, a.At<std::byte>(moment), b.At<std::byte>(moment), x.At<std::byte>(moment),
                        out.At<std::byte>(moment), scratch.At<std::byte>(moment));
  };
}

auto Bind(const op::Matmul& op, Binder& binder) -> Kernel {
  if (op.out_onto.valid()) {
    CheckSameBytes(binder, op.out, op.out_onto);
  }
  return BindProduct(op, op.out_onto, binder);
}

}  // namespace shardc::cuda
