#include "compiler/checkpoint/lease_watch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace shardc {

auto LeaseSighting::OwnerText() const -> std::string {
  if (!record) {
    return fmt::format("an unknown owner (its lease does not read; it last changed {} s ago)", age_s);
  }
  return fmt::format("run {} on host {} (process {}, since {}, last sign of life {} s ago)", record->run_id,
                     record->process.host, record->process.pid, record->since, age_s);
}

auto LookAtLease(const Descriptor& directory, const std::string& name) -> ErrorOr<LeaseSighting> {
  const std::string path = directory.path() + "/" + name;
  struct stat info {};
  if (fstatat(directory.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? ErrorOr<LeaseSighting>(LeaseSighting{}) : SystemError("examine", path);
  }
  LeaseSighting seen{.is_there = true,
                     .fingerprint = fmt::format("{} {} {} {}.{} ", info.st_ino, info.st_mode & S_IFMT, info.st_size,
                                                info.st_mtim.tv_sec, info.st_mtim.tv_nsec),
                     .record = {},
                     .age_s = std::max<int64_t>(0, std::time(nullptr) - info.st_mtim.tv_sec)};
  if (!S_ISREG(info.st_mode)) {
    return seen;
  }
  Fs& fs = directory.fs();
  const int opened = fs.Open(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  if (opened < 0) {
    // It may have gone meanwhile. One that must not be read is watched all the same.
    return errno == ENOENT || errno == ESTALE  ? ErrorOr<LeaseSighting>(LeaseSighting{})
           : errno == EACCES || errno == ELOOP ? ErrorOr<LeaseSighting>(seen)
                                               : SystemError("open", path);
  }
  const Descriptor file(fs, opened, path);
  std::string text(static_cast<size_t>(std::min<int64_t>(info.st_size, MaxLeaseBytes)), '\0');
  const auto length = ReadUpTo(file, text.data(), static_cast<int64_t>(text.size()), 0);
  if (!length) {
    return errno == ESTALE ? ErrorOr<LeaseSighting>(LeaseSighting{}) : length.error();
  }
  text.resize(static_cast<size_t>(*length));
  seen.fingerprint += text;
  seen.record = LeaseRecordFromText(text);
  return seen;
}

auto LeaseWatch::Judge(const LeaseSighting& seen, Seconds stale_after) -> LeaseVerdict {
  const ProcessState state = seen.record ? StateOf(seen.record->process) : ProcessState::Unknown;
  if (state == ProcessState::Gone) {
    return LeaseVerdict::Stale;
  }
  if (state == ProcessState::Running) {
    return LeaseVerdict::Held;
  }
  if (seen.fingerprint == fingerprint_) {
    return watched() >= stale_after ? LeaseVerdict::Stale : LeaseVerdict::Undecided;
  }
  const bool has_moved = !fingerprint_.empty() && token_ == seen.token() && state != ProcessState::Ending;
  fingerprint_ = seen.fingerprint;
  token_ = seen.token();
  since_ = std::chrono::steady_clock::now();
  return has_moved ? LeaseVerdict::Held : LeaseVerdict::Undecided;
}

}  // namespace shardc
