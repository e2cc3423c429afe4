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

/// The last save of a run that is on record; none where there is none. A line that was cut short counts for nothing.
/// Errors: the file is a link or no regular file, or cannot be read.
auto LastSaveOnRecord(const Descriptor& run_dir, const std::string& run_id) -> ErrorOr<std::optional<SavedStep>>;

/// Appends a line and syncs it.
auto PutSaveOnRecord(const Descriptor& run_dir, const std::string& run_id, const SavedStep& saved) -> Status;

}  // namespace shardc
