#include "compiler/ops/step_flops.h"

#include "compiler/plan/loops.h"

namespace shardc {

auto StepFlopsOf(const Plan& plan) -> StepFlops {
  StepFlops flops;
  LoopTracker loops;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    loops.Enter(op);
    const OpCost cost = VisitBody(op.body, [&](const auto& body) { return Cost(body, plan); });
    (op.phase == Phase::Recompute ? flops.recompute : flops.model) += cost.matmul_flops * loops.count();
  }
  return flops;
}

}  // namespace shardc
