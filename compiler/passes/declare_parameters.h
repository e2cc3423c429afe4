// The parameter table of a plan: logical tensors with their init rule and optimizer group, matched by name.
#pragma once

#include <string>
#include <unordered_map>

#include "compiler/model/model_family.h"
#include "compiler/passes/pass.h"

namespace shardc {

/// Fills plan.groups, plan.parameters and plan.seed, and makes the full, unsharded value of each parameter.
/// Returns: the full value by parameter name.
/// Errors: init-rule-missing, init-rule-duplicate, init-rule-unused, init-value-domain, those of the seed (seed.h),
/// group-duplicate, group-unused, frozen-unused, frozen-all.
auto DeclareParameters(Plan& plan, const ModelFamily& family, const ModelSizes& sizes, PassContext& context)
    -> ErrorOr<std::unordered_map<std::string, ValueId>>;

}  // namespace shardc
