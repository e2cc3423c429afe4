// One launch at a time in a run directory: an flock on its file `lock`, freed by the kernel with the last process that
// holds it, so that no stale lock can be left.
#pragma once

#include <string>
#include <utility>

#include "compiler/base/error_or.h"

namespace shardc {

class RunDirLock {
 public:
  /// Makes the directory where missing.
  /// Errors: ExitCode::Environment with the process that holds the lock, or why the file cannot be made.
  static auto Acquire(const std::string& run_dir) -> ErrorOr<RunDirLock>;
  RunDirLock() = default;
  RunDirLock(RunDirLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  auto operator=(RunDirLock&& other) noexcept -> RunDirLock& {
    std::swap(file_, other.file_);
    return *this;
  }
  ~RunDirLock();

 private:
  int file_ = -1;
};

}  // namespace shardc
