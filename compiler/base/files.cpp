#include "compiler/base/files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace shardc {

/// Returns true for a FIFO in a folder; the pipes of a shell are in a file system of their own.
static auto IsFifo(const std::string& path) -> bool {
  struct stat status {};
  struct statfs system {};
  return stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode) && statfs(path.c_str(), &system) == 0 &&
         system.f_type != PIPEFS_MAGIC;
}

/// Returns true for a path such as /dev/fd/3, or a link to one.
static auto IsDescriptor(const std::filesystem::path& path) -> bool {
  std::error_code unknown;
  const auto is_in_proc = [&](const std::filesystem::path& own) {
    return std::filesystem::canonical(own.parent_path(), unknown).string().starts_with("/proc/");
  };
  return is_in_proc(path) || is_in_proc(std::filesystem::read_symlink(path, unknown));
}

auto OpenToRead(const std::string& path) -> ErrorOr<Descriptor> {
  // O_NONBLOCK: a FIFO opens at once. Reading waits again.
  const int descriptor = PosixFs().Open(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK, 0);
  if (descriptor < 0) {
    return Error{ExitCode::Usage, std::strerror(errno)};
  }
  Descriptor file(PosixFs(), descriptor, path);
  if (IsFifo(path)) {
    return Error{ExitCode::Usage, "it is a FIFO; give a file, or pipe the text in as /dev/stdin"};
  }
  fcntl(descriptor, F_SETFL, 0);
  return file;
}

auto ReadFile(const std::string& path, size_t limit) -> ErrorOr<std::string> {
  ASSIGN_OR_RETURN(const auto file, OpenToRead(path));
  std::string text;
  int64_t count = 1;
  while (count > 0 && text.size() < limit) {
    constexpr size_t chunk = 1 << 16;
    const size_t before = text.size();
    const size_t wanted = std::min(chunk, limit - before);
    text.resize(before + wanted);
    const auto read = ReadNext(file, text.data() + before, static_cast<int64_t>(wanted));
    if (!read) {
      return Error{ExitCode::Usage, std::strerror(errno)};
    }
    count = *read;
    text.resize(before + static_cast<size_t>(count));
  }
  return text;
}

auto ReadFileAt(const Descriptor& directory, const std::string& name, int64_t limit) -> ErrorOr<std::string> {
  const auto file = OpenFileAt(directory, name);
  ASSIGN_OR_RETURN(const auto bytes, file ? FileBytes(*file) : file.error());
  FAIL_IF(bytes > limit, ExitCode::Environment, "{} has {} bytes; at most {} are read", file->path(), bytes, limit);
  std::string text(static_cast<size_t>(bytes), '\0');
  RETURN_IF_ERROR(ReadAll(*file, text.data(), bytes, 0));
  return text;
}

auto AtomicFile::CreateAs(Descriptor directory, std::string name, std::string temporary) -> ErrorOr<AtomicFile> {
  // A process that was killed may have left it.
  static_cast<void>(directory.fs().Unlink(directory.get(), temporary.c_str(), false));
  ASSIGN_OR_RETURN(auto file, CreateFileAt(directory, temporary));
  return AtomicFile(std::move(directory), std::move(name), std::move(temporary), std::move(file));
}

auto AtomicFile::Create(const std::string& path) -> ErrorOr<AtomicFile> {
  std::error_code unresolved;
  std::filesystem::path target = std::filesystem::canonical(path, unresolved);
  if (unresolved) {
    target = path;
  }
  struct stat status {};
  if (stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    // Opening a FIFO waits for a reader.
    FAIL_IF(IsFifo(target) || S_ISSOCK(status.st_mode) || S_ISBLK(status.st_mode), ExitCode::Usage,
            "cannot write to {}: it is {}; name a file, or write to /dev/stdout", path,
            S_ISFIFO(status.st_mode)   ? "a FIFO"
            : S_ISSOCK(status.st_mode) ? "a socket"
                                       : "a disk");
    const int descriptor = PosixFs().Open(AT_FDCWD, target.c_str(), O_WRONLY, 0);
    if (descriptor < 0) {
      return SystemError("create", target);
    }
    return AtomicFile(Descriptor(), target, "", Descriptor(PosixFs(), descriptor, target));
  }
  // A new name beside it would be no file of a folder.
  FAIL_IF(unresolved && IsDescriptor(path), ExitCode::Usage,
          "cannot write to {}: this process has no such file open, or one that was removed; name a file", path);
  const std::filesystem::path folder = target.parent_path();
  auto directory = OpenDirectory(PosixFs(), folder.empty() ? "." : folder.string());
  FAIL_IF(!directory, directory.error().code, "cannot create {}: {}", target.string(), directory.error().message);
  // Others may write to the same folder.
  const std::string name = target.filename();
  const std::string temporary = fmt::format("{}.{}.tmp", name, getpid());
  // A file without a name, where the file system has such files: it goes with this process, however that ends.
  const int unnamed = PosixFs().Open(directory->get(), ".", O_TMPFILE | O_WRONLY, 0666);
  if (unnamed >= 0) {
    return AtomicFile(*std::move(directory), name, temporary, Descriptor(PosixFs(), unnamed, target));
  }
  return CreateAs(*std::move(directory), name, temporary);
}

auto AtomicFile::CreateAt(const Descriptor& directory, const std::string& name) -> ErrorOr<AtomicFile> {
  ASSIGN_OR_RETURN(const auto there, StatusAt(directory, name));
  FAIL_IF(there.kind != EntryKind::Missing && there.kind != EntryKind::File, ExitCode::Environment,
          "cannot replace {}/{}: it is not a regular file", directory.path(), name);
  const int own = directory.fs().Open(directory.get(), ".", O_RDONLY | O_DIRECTORY, 0);
  if (own < 0) {
    return SystemError("open directory", directory.path());
  }
  return CreateAs(Descriptor(directory.fs(), own, directory.path()), name, name + ".tmp");
}

AtomicFile::~AtomicFile() {
  if (directory_.is_open() && !temporary_.empty()) {
    static_cast<void>(directory_.fs().Unlink(directory_.get(), temporary_.c_str(), false));
  }
}

auto AtomicFile::Append(std::string_view bytes) -> Status {
  constexpr int64_t BytesAtOnce = int64_t{16} << 20;
  RETURN_IF_ERROR(AppendAll(file_, bytes));
  appended_ += std::ssize(bytes);
  if (appended_ - started_ >= BytesAtOnce) {
    // Fsync does the rest, whatever comes of this.
    static_cast<void>(sync_file_range(file_.get(), started_, appended_ - started_, SYNC_FILE_RANGE_WRITE));
    started_ = appended_;
  }
  return Success{};
}

auto AtomicFile::Overwrite(int64_t offset, std::string_view bytes) -> Status {
  return WriteAll(file_, bytes.data(), static_cast<int64_t>(bytes.size()), offset);
}

/// Gives a file that has no name this one; a file that has one keeps it.
static auto GiveName(const Descriptor& file, const Descriptor& directory, const std::string& name) -> Status {
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || status.st_nlink > 0) {
    return Success{};
  }
  // A process that had this number, and was killed just here, may have left one.
  static_cast<void>(directory.fs().Unlink(directory.get(), name.c_str(), false));
  const std::string own = fmt::format("/proc/self/fd/{}", file.get());
  return linkat(AT_FDCWD, own.c_str(), directory.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0
             ? Status(Success{})
             : SystemError("create", name);
}

auto AtomicFile::CommitUnsynced() -> Status {
  if (!directory_.is_open()) {
    return file_.Close();
  }
  RETURN_IF_ERROR(file_.Fsync());
  RETURN_IF_ERROR(GiveName(file_, directory_, temporary_));
  RETURN_IF_ERROR(file_.Close());
  RETURN_IF_ERROR(RenameAt(directory_, temporary_, name_));
  temporary_.clear();
  return Success{};
}

auto AtomicFile::Commit() -> Status {
  RETURN_IF_ERROR(CommitUnsynced());
  return directory_.is_open() ? SyncDirectory(directory_) : Success{};
}

auto CheckWorkingDirectory() -> Status {
  std::error_code error;
  static_cast<void>(std::filesystem::current_path(error));
  return error ? Status(Fail(ExitCode::Environment,
                             "the working directory is gone ({}); change to a folder that exists", error.message()))
               : Success{};
}

auto WriteFile(const std::string& path, std::string_view text) -> Status {
  ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path));
  RETURN_IF_ERROR(file.Append(text));
  return file.Commit();
}

auto PutFileAt(const Descriptor& directory, const std::string& name, std::string_view text) -> Status {
  ASSIGN_OR_RETURN(auto file, AtomicFile::CreateAt(directory, name));
  RETURN_IF_ERROR(file.Append(text));
  return file.Commit();
}

auto PutFilesAt(const Descriptor& directory, const std::vector<std::pair<std::string, std::string>>& files) -> Status {
  for (const auto& [name, text] : files) {
    ASSIGN_OR_RETURN(auto file, AtomicFile::CreateAt(directory, name));
    RETURN_IF_ERROR(file.Append(text));
    RETURN_IF_ERROR(file.CommitUnsynced());
  }
  return SyncDirectory(directory);
}

}  // namespace shardc
