// From the text of a plan to a plan that may be carried out: the one judge of `shardc run`, `check` and `plan`, and of
// shardc-run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns true if the text begins as a plan does: its first line, after empty lines and comments, is `plan
/// version=...`.
auto IsPlanText(std::string_view text) -> bool;
/// Returns the device that a plan's first line names; Device::Cpu if it names no known device.
auto DeviceOfPlanText(std::string_view text) -> Device;

/// Reads and verifies a plan. `path` is for messages. `faults`, if given, gets one line per fault, as many as the
/// verifier reports.
/// Errors: RecipeRejected if the text is not a plan, was made with a pass disabled or does not verify; Environment if
/// it asks for a communicator that this version does not have.
auto ReadRunnablePlan(const std::string& path, std::string_view text, std::vector<std::string>* faults = nullptr)
    -> ErrorOr<Plan>;

/// Errors: RecipeRejected where the recipe of the plan leaves out what a run needs, and the plan has what was assumed
/// instead: it can be looked at, and not run.
auto CheckAssumesNothing(const std::string& path, const Plan& plan) -> Status;

}  // namespace shardc
