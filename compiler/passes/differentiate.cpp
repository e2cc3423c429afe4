// Emits the backward ops.
//
// Needs: forward ops in `step`, whose loss sums are divided by counts. Gives: a gradient for every trainable parameter
// (ops/backward.h, which says how).
#include "compiler/ops/backward.h"
#include "compiler/passes/pass.h"

namespace shardc {

auto Differentiate(Plan plan, PassContext&) -> ErrorOr<Plan> {
  const std::vector<Op> forward = std::move(plan.section(SectionKind::Step).ops);
  std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
  ops.clear();
  const auto refusal = EmitBackward(&plan, forward, &ops);
  CHECK(!refusal, "the forward has no backward: {}", *refusal);
  return plan;
}

}  // namespace shardc
