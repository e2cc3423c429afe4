// Scratch of matmul, as gemm_scratch.h cuts it.
#include "compiler/ops/gemm_scratch.h"

#include "compiler/ops/op_support.h"

namespace shardc {

auto ScratchBytes(const op::Matmul& op, const Plan& plan) -> Bytes {
  const Matrix a = AsMatrix(plan, op.a);
  const Matrix out = AsMatrix(plan, op.out);
  const GemmSizes sizes{.m = out.rows, .n = out.columns, .k = op.transpose_a ? a.rows : a.columns};
  return Bytes{SizeOf(DType::F32) * GemmSlots(sizes, plan.run.threads) * GemmSlotFloats(sizes)};
}

}  // namespace shardc
