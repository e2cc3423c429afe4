// `shardc doctor`: what each host of a launch sees, whether the hosts see one run directory, and what the links between
// them carry.
#pragma once

#include <optional>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/timeout.h"
#include "compiler/base/units.h"
#include "compiler/cluster/place.h"

namespace shardc {

struct DoctorOptions {
  /// Looked at by all hosts; empty: none is.
  std::string run_dir;
  /// Address or interface, as Meeting::Options::own_address.
  std::string own_address;
  std::string torch_version;
  /// How long a process waits for the others.
  Seconds timeout = DefaultTimeout;
  bool json = false;
};

/// Prints a table on stdout, in process 0, and what is wrong on stderr. `place`: none if this host is alone.
/// Returns Ok, or Environment if something keeps a run from starting here.
auto RunDoctor(const std::optional<LaunchPlace>& place, const DoctorOptions& options) -> ErrorOr<ExitCode>;

}  // namespace shardc
