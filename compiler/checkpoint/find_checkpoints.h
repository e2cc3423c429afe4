// The checkpoints in a directory: those that are whole, and what else has such a name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/checkpoint/manifest.h"

namespace shardc {

/// Whole: its manifest reads, and its files are there with their sizes. Temporary: a save that is under way, or was cut
/// short. Aside: moved away by a later save. Damaged: anything else that bears the name of a checkpoint.
enum class CheckpointState : uint8_t { Whole, Temporary, Aside, Damaged };

struct FoundCheckpoint {
  std::string name;
  std::string path;
  CheckpointState state = CheckpointState::Whole;
  /// The reason why it is damaged; else empty.
  std::string why;
  /// Bytes of the files in it.
  int64_t bytes = 0;
  /// When its manifest was written, or if it has none, the directory; nanoseconds since the epoch.
  int64_t written_ns = 0;
  /// Set if it reads.
  std::optional<Manifest> manifest;
  /// True for the whole one of its run with the highest step: the one that the run would continue from.
  bool is_newest = false;
  /// True if no save gives such a name: a copy or a link of the user's.
  bool is_users = false;
};

struct FoundCheckpoints {
  /// The directory that has them.
  std::string directory;
  /// By their names.
  std::vector<FoundCheckpoint> all;
};

/// Returns what is in a directory of checkpoints, in that of a run directory, or of a checkpoint that one alone, also
/// of a copy with another name. Else names that no save makes are left out. Errors: Checkpoint if nothing is found.
auto FindCheckpoints(const std::string& path) -> ErrorOr<FoundCheckpoints>;

}  // namespace shardc
