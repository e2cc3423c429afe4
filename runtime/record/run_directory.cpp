#include "runtime/record/run_directory.h"

#include <sys/stat.h>

namespace shardc {

auto RunDirectory::Open(const std::string& path) -> ErrorOr<RunDirectory> {
  if (const Status made = MakeDirectories(PosixFs(), path); !made) {
    return Fail(made.error().code, "cannot make the run directory {}: {}; name another by --run-dir", path,
                made.error().message);
  }
  ASSIGN_OR_RETURN(auto folder, OpenDirectory(PosixFs(), path));
  ASSIGN_OR_RETURN(const auto status, StatusOf(folder));
  return RunDirectory(std::move(folder), status);
}

auto RunDirectory::CheckThere() const -> Status {
  // With links followed, as it was opened.
  struct stat now {};
  if (stat(path().c_str(), &now) == 0 && status_.IsSameAs({.device = now.st_dev, .inode = now.st_ino})) {
    return Success{};
  }
  return Fail(
      ExitCode::Environment,
      "the run directory {} is gone: it was removed or renamed while the run continued, so that nothing can be put "
      "on record or saved there any more",
      path());
}

}  // namespace shardc
