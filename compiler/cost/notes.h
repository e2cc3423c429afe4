// Notes on a plan that its user may not have meant so, though nothing about it is wrong: one line each, with the key
// that answers it. `check` and `plan` print these lines, and so does the start of a run.
#pragma once

#include <string>
#include <vector>

#include "compiler/data/data_files.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns a text of whole lines, each "note: ...". `facts`: what LookAtData returns. Files that a run would refuse
/// give no notes: their faults are reported elsewhere. Requires: all passes have run.
auto NotesText(const Plan& plan, const ErrorOr<std::vector<SourceFacts>>& facts) -> std::string;

}  // namespace shardc
