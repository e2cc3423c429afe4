// What people read of a run: lines on stderr, and the same lines in the log of the attempt, where there is one.
// Launcher and ranks write to one log, each line in one piece.
#pragma once

#include <cstdio>
#include <string_view>
#include <utility>

#include "compiler/base/fs.h"

namespace shardc {

/// Writes what it can: a log on a full disk, or one that nobody reads any more, ends no run.
auto PrintLog(std::FILE* out, std::string_view text) -> void;

class RunLog {
 public:
  /// On stderr alone.
  RunLog() = default;
  /// `file` was opened to append.
  explicit RunLog(Descriptor file) : file_(std::move(file)) {}

  /// Whole lines, with their line ends, on stderr and in the log; control characters are spelled out. What cannot be
  /// written is lost: a log on a full disk, or one that nobody reads any more, ends no run.
  auto Print(std::string_view lines) const -> void;
  /// In the log alone.
  auto Keep(std::string_view lines) const -> void;

  /// -1 if it prints on stderr alone.
  auto descriptor() const -> int { return file_.get(); }

 private:
  Descriptor file_;
};

}  // namespace shardc
