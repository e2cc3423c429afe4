// Files read whole, and files that appear whole or not at all: a reader of the name sees the old content or all of the
// new, after a crash or a loss of power too.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

/// Opens a file, a device, or what is piped in (/dev/stdin, `<(...)`). A FIFO is refused, since opening one that nobody
/// writes to would wait for ever. Errors: the reason, without the path (ExitCode::Usage).
auto OpenToRead(const std::string& path) -> ErrorOr<Descriptor>;

/// Reads the first `limit` bytes of what OpenToRead opens. Errors: as there.
auto ReadFile(const std::string& path, size_t limit) -> ErrorOr<std::string>;
/// Reads the whole of a file in an open directory. Errors: missing, not a regular file, or larger than `limit`.
auto ReadFileAt(const Descriptor& directory, const std::string& name, int64_t limit) -> ErrorOr<std::string>;

/// A file written under a temporary name beside its own, synced, and renamed by Commit, which syncs the folder too. The
/// temporary file is removed if Commit never comes.
class AtomicFile {
 public:
  /// Makes the output of a command, at a path that the user named. A link stays, and the file that it points to is
  /// replaced. A device or pipe (/dev/null, /dev/stdout) is written as it is.
  static auto Create(const std::string& path) -> ErrorOr<AtomicFile>;
  /// Makes a file of a directory to which this process alone writes. What a process that was killed left under the
  /// temporary name, NAME.tmp, is removed first. Errors: the name is there and is not a regular file.
  static auto CreateAt(const Descriptor& directory, const std::string& name) -> ErrorOr<AtomicFile>;
  AtomicFile(AtomicFile&& other) noexcept = default;
  AtomicFile(const AtomicFile&) = delete;
  auto operator=(const AtomicFile&) -> AtomicFile& = delete;
  auto operator=(AtomicFile&&) -> AtomicFile& = delete;
  ~AtomicFile();

  /// Adds bytes at the end. The system begins to write those of a large file, so that Commit waits for the last alone.
  auto Append(std::string_view bytes) -> Status;
  /// Writes over bytes that were appended before.
  auto Overwrite(int64_t offset, std::string_view bytes) -> Status;
  auto Commit() -> Status;
  /// Commits without syncing the folder: a loss of power may leave the old file under the name until that is done.
  auto CommitUnsynced() -> Status;

 private:
  AtomicFile(Descriptor directory, std::string name, std::string temporary, Descriptor file)
      : directory_(std::move(directory)),
        name_(std::move(name)),
        temporary_(std::move(temporary)),
        file_(std::move(file)) {}
  static auto CreateAs(Descriptor directory, std::string name, std::string temporary) -> ErrorOr<AtomicFile>;

  /// Not open where a device is written.
  Descriptor directory_;
  std::string name_;
  /// Empty where nothing lies under it any more.
  std::string temporary_;
  Descriptor file_;
  int64_t appended_ = 0;
  /// Bytes that the system was asked to write.
  int64_t started_ = 0;
};

/// Checks that relative paths have a meaning. Errors: ExitCode::Environment: the working directory was removed.
auto CheckWorkingDirectory() -> Status;

/// Writes an AtomicFile in one call.
auto WriteFile(const std::string& path, std::string_view text) -> Status;
auto PutFileAt(const Descriptor& directory, const std::string& name, std::string_view text) -> Status;
/// Writes several such files, names and texts in their order, and syncs the directory once.
auto PutFilesAt(const Descriptor& directory, const std::vector<std::pair<std::string, std::string>>& files) -> Status;

}  // namespace shardc
