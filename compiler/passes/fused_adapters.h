// Projections that share one A (adapter.fused): whether they can, and whether the base's modules are those that peft
// would adapt.
#pragma once

#include "compiler/model/model_family.h"
#include "compiler/passes/pass.h"

namespace shardc {

/// Checks that each name of adapter.fused is a module of the family whose projections have the same adapter. Errors:
/// adapter-fused. Warnings: adapter-modules.
auto CheckFusedAdapters(const ParameterSpecs& specs, const ModelSizes& sizes, PassContext& context) -> void;

}  // namespace shardc
