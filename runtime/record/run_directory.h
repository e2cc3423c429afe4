// The run directory of a launch, held open: what is put into it goes into this very directory, and never through a
// link. Whether it still lies under its name can be asked at any time, since a run whose records nobody can find must
// not continue.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

/// The launch that owns the directory, in the form of a Lease. A name of its own: checkpoints may lie in the same
/// directory, and have an owner of their own.
constexpr const char* RunLeaseName = "launch.json";

class RunDirectory {
 public:
  /// Makes it where missing. The path itself may be a link.
  static auto Open(const std::string& path) -> ErrorOr<RunDirectory>;

  auto folder() const -> const Descriptor& { return folder_; }
  auto path() const -> const std::string& { return folder_.path(); }

  /// Errors: ExitCode::Environment where it was removed or renamed since it was opened. Cost: one system call.
  auto CheckThere() const -> Status;

 private:
  RunDirectory(Descriptor folder, FileStatus status) : folder_(std::move(folder)), status_(status) {}

  Descriptor folder_;
  FileStatus status_;
};

}  // namespace shardc
