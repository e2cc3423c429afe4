// Notes on a plan that its user may not have meant so, though nothing about it is wrong: one line each, with the key
// that answers it. `check` and `plan` print these lines, and so does the start of a run.
#pragma once

#include <string>
#include <vector>

#include "compiler/data/data_files.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns the lines, each "note: ..." without an end of line. `facts`: the contents of the files (LookAtData); empty
/// if they were not looked at. Requires: all passes have run.
auto NotesOf(const Plan& plan, const std::vector<SourceFacts>& facts) -> std::vector<std::string>;

/// Returns NotesOf of the files that are here, as a text of whole lines. Files that a run would refuse give no notes:
/// their faults are reported elsewhere.
auto NotesText(const Plan& plan) -> std::string;

}  // namespace shardc
