#include "compiler/checkpoint/new_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "compiler/base/text/parse_whole.h"

namespace shardc {

/// Locks the directory for as long as it is open, which ends with its process, whatever namespace that has an id in.
/// Returns false if it is another's, or has no locks.
static auto Own(const Descriptor& directory) -> bool { return flock(directory.get(), LOCK_EX | LOCK_NB) == 0; }

/// Removes what exports that were killed left: directories of the prefix that no process owns.
static auto RemoveLeft(const Descriptor& parent, const std::string& prefix) -> Status {
  ASSIGN_OR_RETURN(const auto names, ListDirectory(parent));
  for (const std::string& name : names) {
    if (!name.starts_with(prefix) || !ParseWhole<int64_t>(std::string_view(name).substr(prefix.size()))) {
      continue;
    }
    const auto left = OpenDirectoryAt(parent, name);
    if (left && Own(*left)) {
      // Another user's cannot be removed, and stays.
      static_cast<void>(RemoveDirectoryAt(parent, name));
    }
  }
  return Success{};
}

auto NewDirectory::Make(const std::string& path) -> ErrorOr<NewDirectory> {
  const std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  const std::filesystem::path output = whole.has_filename() ? whole : whole.parent_path();
  auto parent = OpenDirectory(PosixFs(), output.has_parent_path() ? output.parent_path().string() : ".");
  if (!parent) {
    return Error{ExitCode::Environment, parent.error().message};
  }
  NewDirectory made(*std::move(parent), output.filename().string());
  const auto there = StatusAt(made.parent_, made.name_);
  if (!there || there->kind != EntryKind::Missing) {
    return there ? Fail(ExitCode::Usage, "{} is there already; name a directory that is not", path) : there.error();
  }
  const std::string prefix = fmt::format(".{}.tmp-", made.name_);
  RETURN_IF_ERROR(RemoveLeft(made.parent_, prefix));
  for (int64_t number = 1;; ++number) {
    const std::string temporary = fmt::format("{}{}", prefix, number);
    if (PosixFs().MakeDirectory(made.parent_.get(), temporary.c_str()) == 0) {
      made.temporary_ = temporary;
      break;
    }
    if (errno != EEXIST) {
      return SystemError("make", path);
    }
  }
  ASSIGN_OR_RETURN(made.directory_, OpenDirectoryAt(made.parent_, made.temporary_));
  // Nobody removes it on a file system without locks.
  FAIL_IF(!Own(made.directory_) && errno == EWOULDBLOCK, ExitCode::Environment,
          "another export to {} has just begun; try again", path);
  return made;
}

auto NewDirectory::Commit() -> Status {
  RETURN_IF_ERROR(directory_.Fsync());
  const auto renamed = syscall(SYS_renameat2, parent_.get(), temporary_.c_str(), parent_.get(), name_.c_str(),
                               1U /* RENAME_NOREPLACE */);
  if (renamed != 0) {
    return SystemError("rename the new directory to", name_);
  }
  temporary_.clear();
  return parent_.Fsync();
}

}  // namespace shardc
