// Variables of the environment by which NCCL can be told to contradict the plan: those that a communicator refuses, and
// those in which its members have to agree, or to differ. NCCL itself would hang at them, or fail without their name.
// Others may be set as NCCL's documentation says.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/error_or.h"

namespace shardc {

/// Values of the variables in one process, in the order of the table; empty: not set.
using NcclVariables = std::vector<std::string>;

/// Returns those of this process.
auto OwnNcclVariables() -> NcclVariables;

/// A member of a communicator, as the others know it.
struct NcclMember {
  /// "rank 8 (node1)".
  std::string name;
  std::string host;
  NcclVariables variables;
};

/// Returns an error that names the first variable that does not fit, with its members and what to do. Requires: all
/// members have all variables.
auto CheckNcclVariables(const std::vector<NcclMember>& members) -> Status;

}  // namespace shardc
