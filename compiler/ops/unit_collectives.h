// Which collectives are those of units: activations are gathered and reduce-scattered too.
#pragma once

#include "compiler/plan/plan.h"

namespace shardc {

/// The op as a gather of parameters; nullptr where it is none.
inline auto ParameterGatherOf(const Plan& plan, const Op& op) -> const op::AllGather* {
  const auto* gather = op.As<op::AllGather>();
  const bool is_one =
      gather != nullptr && plan.buffers[plan.values[gather->full].buffer].category == Category::Gathered;
  return is_one ? gather : nullptr;
}

/// The op as a reduce-scatter of gradients; nullptr where it is none.
inline auto GradientScatterOf(const Plan& plan, const Op& op) -> const op::ReduceScatter* {
  const auto* scatter = op.As<op::ReduceScatter>();
  const bool is_one =
      scatter != nullptr && plan.buffers[plan.values[scatter->full].buffer].category == Category::Gradients;
  return is_one ? scatter : nullptr;
}

}  // namespace shardc
