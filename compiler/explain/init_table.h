// What initialises each parameter, with the moments that its values will have.
#pragma once

#include <string>

#include "compiler/plan/plan.h"

namespace shardc {

/// One line a parameter: name, shape, rule with everything known put in, mean and standard deviation of what is drawn
/// (by analysis; what is left of a cut distribution), and the line and key of the recipe that say so. Requires: pass
/// build has run.
auto RenderInitText(const Plan& plan) -> std::string;
/// The same for programs; fields are documented in docs/explain.md.
auto RenderInitJson(const Plan& plan) -> std::string;

}  // namespace shardc
