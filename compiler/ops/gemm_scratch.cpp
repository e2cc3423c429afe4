// Sizes and scratch of matmul, as gemm_scratch.h cuts it.
#include "compiler/ops/gemm_scratch.h"

#include "compiler/ops/op_support.h"

namespace shardc {

auto GemmSizesOf(const op::Matmul& op, const Plan& plan) -> GemmSizes {
  const Matrix a = AsMatrix(plan, op.a);
  const Matrix b = AsMatrix(plan, op.b);
  return {.m = op.transpose_a ? a.columns : a.rows,
          .n = op.transpose_b ? b.rows : b.columns,
          .k = op.transpose_a ? a.rows : a.columns};
}

auto ScratchBytes(const op::Matmul& op, const Plan& plan) -> Bytes {
  const GemmSizes sizes = GemmSizesOf(op, plan);
  return Bytes{SizeOf(DType::F32) * GemmSlots(sizes, plan.run.threads) * GemmSlotFloats(sizes)};
}

}  // namespace shardc
