// POSIX files. A reader of `path` sees the old content or all of the new: rename is the commit point, and the folder is
// synced after it.
#include "compiler/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace shardc {

auto ReadFile(const std::string& path, size_t limit) -> ErrorOr<std::string> {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return Error{ExitCode::Usage, std::strerror(errno)};
  }
  std::string text;
  ssize_t count = 1;
  while (count > 0 && text.size() < limit) {
    constexpr size_t chunk = 1 << 16;
    const size_t before = text.size();
    const size_t wanted = std::min(chunk, limit - before);
    text.resize(before + wanted);
    do {
      count = read(fd, text.data() + before, wanted);
    } while (count < 0 && errno == EINTR);
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  const int error = errno;
  close(fd);
  if (count < 0) {
    return Error{ExitCode::Usage, std::strerror(error)};
  }
  return text;
}

auto AtomicFile::Create(const std::string& path) -> ErrorOr<AtomicFile> {
  // A link stays, and what it points to is replaced.
  std::error_code unresolved;
  const std::filesystem::path resolved = std::filesystem::canonical(path, unresolved);
  std::string target = unresolved ? path : resolved.string();
  struct stat status {};
  const bool is_device = stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  std::string temporary = is_device ? "" : fmt::format("{}.{}.tmp", target, getpid());
  const std::string& opened = is_device ? target : temporary;
  const int fd = open(opened.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    return Fail(ExitCode::Environment, "cannot create {}: {}", opened, std::strerror(errno));
  }
  return AtomicFile(std::move(target), std::move(temporary), fd);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)), fd_(std::exchange(other.fd_, -1)) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) {
    close(fd_);
    if (!temporary_.empty()) {
      unlink(temporary_.c_str());
    }
  }
}

auto AtomicFile::Failure(std::string_view what) const -> Error {
  return Fail(ExitCode::Environment, "cannot {} {}: {}", what, path_, std::strerror(errno));
}

auto AtomicFile::Append(std::string_view bytes) -> Status {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) {
      return Failure("write");
    }
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  return Success{};
}

auto AtomicFile::Overwrite(size_t offset, std::string_view bytes) -> Status {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno != EINTR) {
      return Failure("write");
    }
    const auto written = static_cast<size_t>(std::max<ssize_t>(count, 0));
    bytes.remove_prefix(written);
    offset += written;
  }
  return Success{};
}

auto AtomicFile::Commit() -> Status {
  if (temporary_.empty()) {
    return close(std::exchange(fd_, -1)) == 0 ? Status(Success{}) : Status(Failure("write"));
  }
  if (fsync(fd_) != 0) {
    return Failure("write");
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return Failure("replace");
  }
  close(std::exchange(fd_, -1));
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  const int folder_fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd >= 0) {
    // Some file systems cannot sync a folder; the rename stands all the same.
    static_cast<void>(fsync(folder_fd));
    close(folder_fd);
  }
  return Success{};
}

auto WriteFile(const std::string& path, std::string_view text) -> Status {
  auto file = AtomicFile::Create(path);
  if (!file) {
    return file.error();
  }
  RETURN_IF_ERROR(file->Append(text));
  return file->Commit();
}

}  // namespace shardc
