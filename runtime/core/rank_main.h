// What a rank is given when it starts: the launcher makes it, the executor runs with it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"
#include "compiler/plan/plan.h"
#include "runtime/checkpoint/lease.h"
#include "runtime/comm/communicator.h"
#include "runtime/control/rank_control.h"
#include "runtime/core/execution.h"
#include "runtime/core/trace.h"
#include "runtime/core/tune_products.h"
#include "runtime/device/device.h"
#include "runtime/record/attempt.h"
#include "runtime/record/run_directory.h"

namespace shardc {

/// Ids that are asked about, and what about them.
struct GenerateRequest {
  std::vector<int32_t> ids;
  /// File that the logits of all ids go to. Empty: ids are sampled after them, and printed.
  std::string logits;
  int64_t num_sampled = 0;
  /// With 0 each sampled id is the likeliest one.
  double temperature = 1;
  uint64_t seed = 0;
  /// Ids are bytes of text, and printed so; else a line each.
  bool are_bytes = false;
};

struct RankContext {
  const Plan* plan = nullptr;
  int64_t rank = 0;
  /// Process that forked this rank; 0 where ranks are threads.
  int32_t launcher = 0;
  RankDevice* device = nullptr;
  Communicator* comm = nullptr;
  RankControl* control = nullptr;
  /// This launch's own.
  std::string run_dir;
  /// Descriptor of run_dir; null if the launch keeps no record.
  const RunDirectory* directory = nullptr;
  const Lease* lease = nullptr;
  /// The attempt of this launch; null if it does not train.
  const Attempt* attempt = nullptr;
  /// The log of the launch.
  const RunLog* log = nullptr;
  /// Digests of the token files, as in ManifestData. Empty if this launch did not take them.
  std::vector<std::string> data_digests;
  /// Checkpoint to evaluate; empty: train.
  std::string eval_checkpoint;
  /// Request about that checkpoint, in the place of its loss.
  std::optional<GenerateRequest> generate;
  /// The trace of some steps of a training; its path is empty if none was asked for.
  TraceRequest trace;
  TuneRequest tune;
  /// Repeat the launches of a step as graphs of the device.
  bool graphs = false;
  /// Bind every op, run none.
  bool dry = false;
  /// Results as JSON.
  bool json = false;
  /// A run that saves at its end alone warns once after so long.
  Seconds unsaved_warning{600};
  /// When the launch began, and when it has to be over.
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> end_time;
  /// For tests. The guard is the executor's matter.
  Execution execution;
};

/// The whole life of a rank. A code is an outcome that all ranks agree on (Ok, Preempted, Diverged); an error is this
/// rank's own, printed by the launcher as "error: rank N: message", and ends the job.
using RankMain = std::function<ErrorOr<ExitCode>(RankContext&)>;

/// Runs a rank as shardc-run does: trains, evaluates or only binds, as the context says.
auto RunRank(RankContext& context) -> ErrorOr<ExitCode>;

}  // namespace shardc
