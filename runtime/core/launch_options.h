// The options of a launch: those of its command line, and what its processes learn before its ranks start.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/run_option_types.h"
#include "compiler/base/timeout.h"
#include "compiler/base/units.h"
#include "runtime/record/attempt.h"

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

struct LaunchOptions {
  // The run directory is made if it is missing, and is this launch's alone, unless a checkpoint is evaluated. Ranks
  // have none if it is empty.
#define RUN_OPTION(Name, name, flag, Type, initial, help) Type##Option::Value name = initial;
#include "schemas/run_options.def"
  /// For the record.
  AttemptRequest request;
  /// Checkpoint to evaluate; empty: train.
  std::string eval_checkpoint;
  /// Save the initial state, and take no step.
  bool init = false;
  /// Request about that checkpoint, in the place of its loss.
  std::optional<GenerateRequest> generate;
  /// Why there is no plan, in a process whose launch others wait for.
  std::optional<Error> refused;
  bool refused_is_told = false;
  /// Every process of the launch refuses it, and waits for no other.
  bool refused_by_all = false;
  /// Bind every op, run none.
  bool dry = false;
  /// Results as JSON.
  bool json = false;
  /// The hosts are played by one machine: a rank has the number there that it has in the mesh.
  bool hosts_are_played = false;
  /// DevicePlace::shuffles.
  bool shuffles = false;
  /// When the launch began: `train.max_minutes` counts from then.
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  /// When the launch has to be over, by whoever gave it the machines.
  std::optional<std::chrono::steady_clock::time_point> end_time;
  /// How long the others have to end by themselves after the first failure. A rank that is stopped (SIGSTOP) is killed
  /// a second later, so the whole job ends within `timeout` + 5 s.
  Seconds grace{3};
  /// That a rank keeps of a trace; the rest is cut. 200 MB.
  size_t most_trace_events = size_t{1} << 22;
};

}  // namespace shardc
