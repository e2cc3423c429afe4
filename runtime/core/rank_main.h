// What a rank is given when it starts: the launcher makes it, the executor runs with it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"
#include "compiler/checkpoint/lease.h"
#include "compiler/plan/plan.h"
#include "runtime/comm/communicator.h"
#include "runtime/control/rank_control.h"
#include "runtime/core/execution.h"
#include "runtime/core/launch_options.h"
#include "runtime/device/device.h"
#include "runtime/record/attempt.h"
#include "runtime/record/run_directory.h"

namespace shardc {

struct RankContext {
  const Plan* plan = nullptr;
  int64_t rank = 0;
  /// Process that forked this rank; 0 where ranks are threads.
  int32_t launcher = 0;
  RankDevice* device = nullptr;
  Communicator* comm = nullptr;
  RankControl* control = nullptr;
  LaunchOptions options;
  /// Descriptor of the run directory; null if the launch keeps no record.
  const RunDirectory* directory = nullptr;
  const Lease* lease = nullptr;
  /// The attempt of this launch; null if it does not train.
  const Attempt* attempt = nullptr;
  /// The log of the launch.
  const RunLog* log = nullptr;
  /// Digests of the token files, as in ManifestData. Empty if this launch did not take them.
  std::vector<std::string> data_digests;
  /// A run that saves at its end alone warns once after so long.
  Seconds unsaved_warning{600};
  /// For tests. The guard is the executor's matter.
  Execution execution;
};

/// The whole life of a rank. A code is an outcome that all ranks agree on (Ok, Preempted, Diverged); an error is this
/// rank's own, printed by the launcher as "error: rank N: message", and ends the job.
using RankMain = std::function<ErrorOr<ExitCode>(RankContext&)>;

/// Runs a rank as shardc-run does: trains, evaluates or only binds, as the context says.
auto RunRank(RankContext& context) -> ErrorOr<ExitCode>;

}  // namespace shardc
