// Trainings on hosts of emulated GPUs, which this machine plays: their ranks are processes, which exchange by the
// double of NCCL.
#pragma once

#include <string>

#include "tests/support/nccl_double.h"
#include "tests/support/training.h"

namespace shardc {

/// Called by a rank before it has its device.
using PrepareRank = void (*)(NcclDouble& nccl, int64_t rank);

struct HostsRun {
  /// As a shell shows it.
  int status = 0;
  /// Text of stdout and stderr.
  std::string text;
  Seconds waited;
};

/// Trainings of 5 steps of 4 sequences of 16 tokens, with evaluations and a save.
class HostsTraining : public Training {
 public:
  HostsTraining();

  /// Returns the plan of these sets for emulated GPUs, whose ranks communicate so.
  auto CompileFor(Sets sets, const std::string& comm) const -> Plan;
};

/// Trains as shardc-run does, in a process of its own: by processes on hosts that it plays, or on this one.
auto TrainOnHosts(const Plan& plan, const std::string& run_dir, PrepareRank prepare = nullptr,
                  Seconds timeout = Seconds{20}) -> HostsRun;

}  // namespace shardc
