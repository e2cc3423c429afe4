// Files read whole, and files that appear whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "compiler/base/error_or.h"

namespace shardc {

/// The first `limit` bytes of a file. Errors: the system's reason, without the path (ExitCode::Usage).
auto ReadFile(const std::string& path, size_t limit) -> ErrorOr<std::string>;

/// A file written under a temporary name beside its own, synced, and renamed by Commit; removed if that never comes.
/// A device or pipe (/dev/null, /dev/stdout) is written as it is.
class AtomicFile {
 public:
  static auto Create(const std::string& path) -> ErrorOr<AtomicFile>;
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  auto operator=(const AtomicFile&) -> AtomicFile& = delete;
  auto operator=(AtomicFile&&) -> AtomicFile& = delete;
  ~AtomicFile();

  auto Append(std::string_view bytes) -> Status;
  /// Over bytes that were appended before.
  auto Overwrite(size_t offset, std::string_view bytes) -> Status;
  auto Commit() -> Status;

 private:
  AtomicFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  auto Failure(std::string_view what) const -> Error;

  std::string path_;
  /// Empty where `path` itself is written.
  std::string temporary_;
  int fd_ = -1;
};

/// AtomicFile in one call.
auto WriteFile(const std::string& path, std::string_view text) -> Status;

}  // namespace shardc
