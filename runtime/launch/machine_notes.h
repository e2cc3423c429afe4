// Notes at the start of a run on what its machine has too little of, which only slows a run or ends it later.
#pragma once

#include <string>

#include "compiler/plan/plan.h"

namespace shardc {

/// Returns "note: ..." lines: ranks of a CPU that share cores, and checkpoints that the run keeps and that do not fit
/// on the file system of their folder. `num_ranks`: ranks on this machine. `run_dir`: the directory of the run.
auto MachineNotes(const Plan& plan, int64_t num_ranks, const std::string& run_dir) -> std::string;

}  // namespace shardc
