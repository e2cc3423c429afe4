// matmul_add: a copy of x, to which the product is added.
#include "runtime/kernels/parts.h"

namespace shardc::cpu {

auto Bind(const op::MatmulAdd& op, Binder& binder) -> Kernel {
  PartsInOrder parts(&binder);
  parts.Emit(op::Copy{.x = op.x, .y = op.out});
  parts.Emit(op::Matmul{.a = op.a,
                        .b = op.b,
                        .out = op.out,
                        .out_onto = op.out,
                        .scratch = op.scratch,
                        .transpose_a = op.transpose_a,
                        .transpose_b = op.transpose_b});
  return parts.TakeKernel();
}

}  // namespace shardc::cpu
