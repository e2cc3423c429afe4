// matmul: one Gemm over operands seen as matrices, leading dims by the last.
#include "runtime/kernels/cpu/gemm.h"
#include "runtime/kernels/cpu/operand.h"

namespace shardc {

template <class T>
static auto BindMatmul(const op::Matmul& op, Binder& binder) -> Kernel {
  const Matrix a_size = AsMatrix(binder.plan(), op.a);
  const Matrix b_size = AsMatrix(binder.plan(), op.b);
  const Matrix out_size = AsMatrix(binder.plan(), op.out);
  const GemmShape shape{.m = out_size.rows,
                        .n = out_size.columns,
                        .k = op.transpose_a ? a_size.rows : a_size.columns,
                        .transpose_a = op.transpose_a,
                        .transpose_b = op.transpose_b,
                        .stride_a = a_size.columns,
                        .stride_b = b_size.columns,
                        .stride_c = out_size.columns,
                        .beta = AddsOnto(binder, op.out, op.out_onto) ? 1.0F : 0.0F};
  return [a = Resolve<const T>(binder, op.a), b = Resolve<const T>(binder, op.b), out = Resolve<T>(binder, op.out),
          shape](const Moment& moment) -> Status {
    Gemm(shape, a.At(moment), b.At(moment), out.At(moment));
    return Success{};
  };
}

auto Bind(const op::Matmul& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.a).dtype, [&]<class T>() { return BindMatmul<T>(op, binder); });
}

}  // namespace shardc
