#include "runtime/launch/run_dir_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace shardc {

auto RunDirLock::Acquire(const std::string& run_dir) -> ErrorOr<RunDirLock> {
  std::error_code error;
  std::filesystem::create_directories(run_dir, error);
  if (error) {
    return Fail(ExitCode::Environment, "cannot make the run directory {}: {}", run_dir, error.message());
  }
  const std::string path = run_dir + "/lock";
  RunDirLock lock;
  lock.file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (lock.file_ < 0) {
    return Fail(ExitCode::Environment, "cannot open {}: {}", path, std::strerror(errno));
  }
  if (flock(lock.file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return Fail(ExitCode::Environment, "cannot lock {}: {}", path, std::strerror(errno));
    }
    std::array<char, 32> holder{};
    const ssize_t length = pread(lock.file_, holder.data(), holder.size() - 1, 0);
    const std::string who(holder.data(), length > 0 ? std::strcspn(holder.data(), "\n") : 0);
    return Fail(ExitCode::Environment, "run directory {} is in use by another launch (process {})", run_dir,
                who.empty() ? "unknown" : who);
  }
  const std::string text = fmt::format("{}\n", getpid());
  // The number only serves the message above.
  if (ftruncate(lock.file_, 0) != 0 || pwrite(lock.file_, text.data(), text.size(), 0) < 0) {
    return Fail(ExitCode::Environment, "cannot write {}: {}", path, std::strerror(errno));
  }
  return lock;
}

RunDirLock::~RunDirLock() {
  if (file_ >= 0) {
    close(file_);
  }
}

}  // namespace shardc
