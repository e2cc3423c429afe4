// The verifier: judges a plan by what its `passes` list says is established, after every pass and on every plan read
// from a file. It trusts nothing: a plan that it accepts reads no byte that was not written, keeps inside its arenas,
// orders its streams, and initialises, reduces, updates, saves and restores every parameter exactly once.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

/// Returns the findings, empty if the plan is accepted. Each is one line: the op, facts, the rule's name in brackets.
/// Cost: near-linear in ops; a plan on which the work runs away is rejected by name.
auto VerifyPlan(const Plan& plan) -> std::vector<std::string>;

/// Verifies the plan, and asks that it went through all passes in order. Required before a run: a plan that claims
/// fewer passes is judged by fewer rules.
auto VerifyRunnable(const Plan& plan) -> std::vector<std::string>;

}  // namespace shardc
