// Which checkpoint a run goes on from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "runtime/control/rank_control.h"

namespace shardc {

struct CheckpointInfo {
  /// Of the directory step-N.
  std::string path;
  int64_t step = 0;
  std::string run_id;
  /// Path of the run's checkpoint before this one; empty if this is the first. Known to rank 0 alone.
  std::string before;
  /// Directories that bear a checkpoint's name and are none, with the reason: to be told to the user.
  std::vector<std::string> skipped;
};

/// The checkpoint of `run_id` with the highest step (by its manifest, never by time) in `dir`; none where `dir` is
/// missing or holds none. Errors: ExitCode::Checkpoint where directories with a checkpoint's name are there and none of
/// them is a whole checkpoint of this run: a run does not start from scratch over the remains of another.
auto FindNewest(const std::string& dir, const std::string& run_id, Fs& fs = PosixFs())
    -> ErrorOr<std::optional<CheckpointInfo>>;

/// Collective: rank 0 looks; all get its answer or its error. (`skipped`: rank 0 only.)
auto ChooseNewest(const std::string& dir, const std::string& run_id, RankControl& control, Fs& fs = PosixFs())
    -> ErrorOr<std::optional<CheckpointInfo>>;

}  // namespace shardc
