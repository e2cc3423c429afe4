#include "compiler/base/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "compiler/base/units.h"

namespace shardc {

namespace {

auto Nanoseconds(const timespec& time) -> int64_t { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

class PosixFsBody final : public Fs {
 public:
  auto Open(int directory, const char* name, int flags, unsigned mode) -> int override {
    return openat(directory, name, flags | O_CLOEXEC, mode);
  }
  auto Close(int descriptor) -> int override { return close(descriptor); }
  auto Pwrite(int descriptor, const void* data, size_t bytes, int64_t offset) -> int64_t override {
    return pwrite(descriptor, data, bytes, offset);
  }
  auto Pread(int descriptor, void* data, size_t bytes, int64_t offset) -> int64_t override {
    return pread(descriptor, data, bytes, offset);
  }
  auto Write(int descriptor, const void* data, size_t bytes) -> int64_t override {
    return write(descriptor, data, bytes);
  }
  auto Read(int descriptor, void* data, size_t bytes) -> int64_t override { return read(descriptor, data, bytes); }
  auto Fsync(int descriptor) -> int override { return fsync(descriptor); }
  auto MakeDirectory(int directory, const char* name) -> int override { return mkdirat(directory, name, 0777); }
  auto Rename(int directory, const char* from, const char* to) -> int override {
    return renameat(directory, from, directory, to);
  }
  auto Unlink(int directory, const char* name, bool is_directory) -> int override {
    return unlinkat(directory, name, is_directory ? AT_REMOVEDIR : 0);
  }
  auto Stat(int descriptor, const char* name, FileStatus& status) -> int override {
    struct stat info {};
    if (fstatat(descriptor, name, &info, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0) {
      return -1;
    }
    status = {.kind = S_ISREG(info.st_mode)   ? EntryKind::File
                      : S_ISDIR(info.st_mode) ? EntryKind::Directory
                                              : EntryKind::Other,
              .bytes = info.st_size,
              .device = info.st_dev,
              .inode = info.st_ino,
              .num_links = static_cast<int64_t>(info.st_nlink),
              .written_ns = Nanoseconds(info.st_mtim),
              .changed_ns = Nanoseconds(info.st_ctim)};
    return 0;
  }
  auto List(int directory, std::vector<std::string>& names) -> int override {
    // A descriptor of its own: the stream takes it over and moves its position.
    const int own = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* stream = own < 0 ? nullptr : fdopendir(own);
    if (stream == nullptr) {
      if (own >= 0) {
        close(own);
      }
      return -1;
    }
    names.clear();
    errno = 0;
    while (const dirent* entry = readdir(stream)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") {
        names.push_back(name);
      }
    }
    const int code = errno;
    closedir(stream);
    std::sort(names.begin(), names.end());
    errno = code;
    return code == 0 ? 0 : -1;
  }
};

}  // namespace

auto SystemError(std::string_view what, const std::string& path) -> Error {
  return Fail(ExitCode::Environment, "cannot {} {}: {}", what, path, std::strerror(errno));
}

/// Returns the error of a call that did not return 0.
static auto Outcome(int result, std::string_view what, const std::string& path) -> Status {
  return result == 0 ? Status(Success{}) : SystemError(what, path);
}

auto PosixFs() -> Fs& {
  static PosixFsBody body;
  return body;
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : fs_(other.fs_), descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

auto Descriptor::operator=(Descriptor&& other) noexcept -> Descriptor& {
  std::swap(fs_, other.fs_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) {
    fs_->Close(descriptor_);
  }
}

auto Descriptor::Close() -> Status {
  // Closed even where it fails: Linux frees the descriptor first.
  return Outcome(fs_->Close(std::exchange(descriptor_, -1)), "close", path_);
}

auto Descriptor::Fsync() -> Status { return Outcome(fs_->Fsync(descriptor_), "fsync", path_); }

auto SyncDirectory(const Descriptor& directory) -> Status {
  if (directory.fs().Fsync(directory.get()) != 0 && errno != EINVAL) {
    return SystemError("fsync", directory.path());
  }
  return Success{};
}

/// Returns the error of a path that should name a directory, and has something that is neither a file nor one.
static auto NotDirectory(std::string_view what, const std::string& path) -> Error {
  const int code = errno;
  struct stat status {};
  const bool is_special = code == ENOTDIR && stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  errno = code;
  return is_special ? Fail(ExitCode::Environment, "cannot {} {}: it is {}, no directory", what, path,
                           S_ISFIFO(status.st_mode) ? "a FIFO" : "a device or socket")
                    : SystemError(what, path);
}

static auto SyncParentOf(Fs& fs, const std::string& path) -> Status {
  const size_t slash = path.find_last_of('/');
  const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  auto directory = OpenDirectory(fs, parent);
  return directory ? SyncDirectory(*directory) : directory.error();
}

auto MakeDirectories(Fs& fs, const std::string& path) -> Status {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (fs.MakeDirectory(AT_FDCWD, part.c_str()) == 0) {
      RETURN_IF_ERROR(SyncParentOf(fs, part));
    } else {
      // It may be there, even where this process may not write beside it.
      const int code = errno;
      const int there = fs.Open(AT_FDCWD, part.c_str(), O_PATH | O_DIRECTORY, 0);
      if (there < 0) {
        errno = code == EEXIST ? errno : code;
        return NotDirectory("make directory", part);
      }
      fs.Close(there);
    }
    if (end == std::string::npos) {
      return Success{};
    }
  }
}

static auto OpenAt(Fs& fs, int directory, const std::string& name, int flags, const char* what, std::string path)
    -> ErrorOr<Descriptor> {
  const int descriptor = fs.Open(directory, name.c_str(), flags, 0666);
  FAIL_IF(descriptor < 0 && errno == ELOOP && (flags & O_NOFOLLOW) != 0, ExitCode::Environment,
          "cannot {} {}: it is a symbolic link, and nothing is opened through one here", what, path);
  if (descriptor < 0) {
    return SystemError(what, path);
  }
  return Descriptor(fs, descriptor, std::move(path));
}

static auto NotRegular(const std::string& path) -> Error {
  return Fail(ExitCode::Environment, "{} is not a regular file", path);
}

auto OpenDirectory(Fs& fs, const std::string& path) -> ErrorOr<Descriptor> {
  const int descriptor = fs.Open(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY, 0);
  return descriptor < 0 ? ErrorOr<Descriptor>(NotDirectory("open directory", path)) : Descriptor(fs, descriptor, path);
}

auto OpenDirectoryAt(const Descriptor& parent, const std::string& name) -> ErrorOr<Descriptor> {
  return OpenAt(parent.fs(), parent.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, "open directory",
                parent.path() + "/" + name);
}

auto OpenFileAt(const Descriptor& directory, const std::string& name) -> ErrorOr<Descriptor> {
  ASSIGN_OR_RETURN(auto file, OpenAt(directory.fs(), directory.get(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, "open",
                                     directory.path() + "/" + name));
  RETURN_IF_ERROR(FileBytes(file));
  return file;
}

auto CreateFileAt(const Descriptor& directory, const std::string& name) -> ErrorOr<Descriptor> {
  return OpenAt(directory.fs(), directory.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "create",
                directory.path() + "/" + name);
}

auto OpenForAppendAt(const Descriptor& directory, const std::string& name) -> ErrorOr<Descriptor> {
  const std::string path = directory.path() + "/" + name;
  auto there = StatusAt(directory, name);
  if (there && there->kind == EntryKind::Missing) {
    auto made = OpenAt(directory.fs(), directory.get(), name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW,
                       "create", path);
    if (made) {
      return made;
    }
    // Another process may have made it in between.
    there = StatusAt(directory, name);
    if (there && there->kind == EntryKind::Missing) {
      return made;
    }
  }
  if (!there) {
    return there.error();
  }
  if (there->kind != EntryKind::File) {
    return NotRegular(path);
  }
  ASSIGN_OR_RETURN(auto file, OpenAt(directory.fs(), directory.get(), name,
                                     O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK, "open", path));
  RETURN_IF_ERROR(FileBytes(file));
  return file;
}

auto StatusOf(const Descriptor& file) -> ErrorOr<FileStatus> {
  FileStatus status;
  RETURN_IF_ERROR(Outcome(file.fs().Stat(file.get(), "", status), "examine", file.path()));
  return status;
}

auto StatusAt(const Descriptor& directory, const std::string& name) -> ErrorOr<FileStatus> {
  FileStatus status;
  if (directory.fs().Stat(directory.get(), name.c_str(), status) != 0 && errno != ENOENT) {
    return SystemError("examine", directory.path() + "/" + name);
  }
  return status;
}

auto FileBytes(const Descriptor& file) -> ErrorOr<int64_t> {
  ASSIGN_OR_RETURN(const auto status, StatusOf(file));
  if (status.kind != EntryKind::File) {
    return NotRegular(file.path());
  }
  return status.bytes;
}

auto WriteAll(const Descriptor& file, const void* data, int64_t bytes, int64_t offset) -> Status {
  int64_t done = 0;
  while (done < bytes) {
    const int64_t n = file.fs().Pwrite(file.get(), static_cast<const std::byte*>(data) + done,
                                       static_cast<size_t>(bytes - done), offset + done);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      const int code = n == 0 ? ENOSPC : errno;
      return Fail(ExitCode::Environment, "cannot write {} at byte {} of {}: {}", FormatMemory(Bytes{bytes - done}),
                  offset + done, file.path(), std::strerror(code));
    }
    done += n;
  }
  return Success{};
}

auto ReadUpTo(const Descriptor& file, void* data, int64_t bytes, int64_t offset) -> ErrorOr<int64_t> {
  int64_t done = 0;
  while (done < bytes) {
    const int64_t n = file.fs().Pread(file.get(), static_cast<std::byte*>(data) + done,
                                      static_cast<size_t>(bytes - done), offset + done);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    FAIL_IF(n < 0, ExitCode::Environment, "cannot read {} at byte {}: {}", file.path(), offset + done,
            std::strerror(errno));
    if (n == 0) {
      break;
    }
    done += n;
  }
  return done;
}

auto ReadAll(const Descriptor& file, void* data, int64_t bytes, int64_t offset) -> Status {
  ASSIGN_OR_RETURN(const auto done, ReadUpTo(file, data, bytes, offset));
  FAIL_IF(done < bytes, ExitCode::Checkpoint, "{} ends at byte {}; {} were expected", file.path(), offset + done,
          offset + bytes);
  return Success{};
}

auto AppendAll(const Descriptor& file, std::string_view text) -> Status {
  while (!text.empty()) {
    const int64_t n = file.fs().Write(file.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return SystemError("write", file.path());
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
  return Success{};
}

auto ReadNext(const Descriptor& file, void* data, int64_t bytes) -> ErrorOr<int64_t> {
  int64_t n = 0;
  do {
    n = file.fs().Read(file.get(), data, static_cast<size_t>(bytes));
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    return SystemError("read", file.path());
  }
  return n;
}

auto ListDirectory(const Descriptor& directory) -> ErrorOr<std::vector<std::string>> {
  std::vector<std::string> names;
  RETURN_IF_ERROR(Outcome(directory.fs().List(directory.get(), names), "list", directory.path()));
  return names;
}

auto RenameAt(const Descriptor& directory, const std::string& from, const std::string& to) -> Status {
  FAIL_IF(directory.fs().Rename(directory.get(), from.c_str(), to.c_str()) != 0, ExitCode::Environment,
          "cannot rename {}/{} to {}: {}", directory.path(), from, to, std::strerror(errno));
  return Success{};
}

auto RemoveAt(const Descriptor& directory, const std::string& name) -> Status {
  return Outcome(directory.fs().Unlink(directory.get(), name.c_str(), false), "remove", directory.path() + "/" + name);
}

auto RemoveDirectoryAt(const Descriptor& parent, const std::string& name) -> Status {
  ASSIGN_OR_RETURN(auto directory, OpenDirectoryAt(parent, name));
  ASSIGN_OR_RETURN(auto names, ListDirectory(directory));
  for (const std::string& file : names) {
    RETURN_IF_ERROR(RemoveAt(directory, file));
  }
  return Outcome(parent.fs().Unlink(parent.get(), name.c_str(), true), "remove", parent.path() + "/" + name);
}

}  // namespace shardc
