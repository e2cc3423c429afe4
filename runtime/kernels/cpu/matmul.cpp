// matmul: one Gemm over operands seen as matrices, leading dims by the last.
#include "runtime/kernels/cpu/gemm.h"
#include "runtime/kernels/machine/operand.h"

namespace shardc::cpu {

template <class T, class Out>
static auto BindMatmul(const op::Matmul& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  CheckScratch(op, plan);
  const GemmProblem problem = GemmProblemOf(op, plan);
  const GemmShape shape{.problem = problem,
                        .stride_a = AsMatrix(plan, op.a).columns,
                        .stride_b = AsMatrix(plan, op.b).columns,
                        .stride_c = problem.n,
                        .adds = AddsOnto(binder, op.out, op.out_onto)};
  return BindOver(
      [path = GemmPathOf(plan), shape, slots = GemmSlots(problem, plan.run.threads), has_run = false](
          const T* a, const T* b, Out* out, float* scratch) mutable {
        if (!has_run) {
          has_run = true;
          PrepareGemm<T, Out>(path, shape, a, b, scratch, slots);
        }
        Gemm(path, shape, a, b, out, scratch, slots);
      },
      Resolve<const T>(binder, op.a), Resolve<const T>(binder, op.b), Resolve<Out>(binder, op.out),
      Resolve<float>(binder, op.scratch));
}

auto Bind(const op::Matmul& op, Binder& binder) -> Kernel {
  if (binder.ViewOf(op.a).dtype == DType::BF16 && binder.ViewOf(op.out).dtype == DType::F32) {
    return BindMatmul<BFloat16, float>(op, binder);
  }
  return ForElementType(binder.ViewOf(op.a).dtype, [&]<class T>() { return BindMatmul<T, T>(op, binder); });
}

}  // namespace shardc::cpu
