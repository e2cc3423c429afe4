// matmul_add: one product of cuBLASLt, which takes what is added from x and writes the sum elsewhere.
#include "runtime/kernels/cuda/matmul.h"

namespace shardc::cuda {

auto Bind(const op::MatmulAdd& op, Binder& binder) -> Kernel {
  return BindProduct({.a = op.a,
                      .b = op.b,
                      .out = op.out,
                      .out_onto = {},
                      .scratch = op.scratch,
                      .transpose_a = op.transpose_a,
                      .transpose_b = op.transpose_b},
                     op.x, binder);
}

}  // namespace shardc::cuda
