// saves.jsonl of a run directory: a line for each committed save, with the checkpoint's step and absolute path. By it a
// start that finds no checkpoint, or an old one, knows that there was a newer one, and where.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

constexpr const char* SaveRecordName = "saves.jsonl";

struct SavedStep {
  int64_t step = 0;
  /// Of the directory step-N, absolute.
  std::string path;
  /// 0: not told.
  int64_t attempt = 0;

  friend auto operator==(const SavedStep&, const SavedStep&) -> bool = default;
};

struct SavesOnRecord {
  /// Of the run that is asked for.
  std::optional<SavedStep> last;
  /// Lines, empty ones aside, that are no record of any run's save: one that was cut short, or what a disk made of it.
  int64_t num_unreadable = 0;
};

/// Errors: the file is a link or no regular file, or cannot be read.
auto SavesOf(const Descriptor& run_dir, const std::string& run_id) -> ErrorOr<SavesOnRecord>;

/// Appends a line and syncs it.
auto PutSaveOnRecord(const Descriptor& run_dir, const std::string& run_id, const SavedStep& saved) -> Status;

}  // namespace shardc
