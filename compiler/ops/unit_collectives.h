// Which collectives are those of units: activations are gathered and reduce-scattered too.
#pragma once

#include <optional>

#include "compiler/ops/op_facts.h"

namespace shardc {

/// Returns the op as a gather of parameters; nothing for any other op.
inline auto ParameterGatherOf(const Plan& plan, const Op& op) -> std::optional<Collective> {
  const auto gather = FactsOf(op).collective == CollectiveKind::AllGather ? CollectiveOf(op) : std::nullopt;
  const bool is_one = gather && plan.buffers[plan.values[gather->to].buffer].category == Category::Gathered;
  return is_one ? gather : std::nullopt;
}

/// Returns the op as a reduce-scatter of gradients; nothing for any other op.
inline auto GradientScatterOf(const Plan& plan, const Op& op) -> std::optional<Collective> {
  const auto scatter = FactsOf(op).collective == CollectiveKind::ReduceScatter ? CollectiveOf(op) : std::nullopt;
  const bool is_one = scatter && plan.buffers[plan.values[scatter->from].buffer].category == Category::Gradients;
  return is_one ? scatter : std::nullopt;
}

}  // namespace shardc
