// The text by which a compiled plan is handed to the runtime.
#pragma once

#include <cstddef>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/text.h"

namespace shardc {

/// Prints the plan of the recipe at `path`.
/// Errors: RecipeRejected if the text has more than `most_bytes`, because the runtime would not read it.
auto TextForRuntime(const Plan& plan, const std::string& path, size_t most_bytes = MaxPlanBytes)
    -> ErrorOr<std::string>;

}  // namespace shardc
