// A file in memory, all of it, for reading at any offset. If somebody cuts the file short meanwhile, the kernel sends
// SIGBUS to who reads what is gone. A handler puts zeros there instead and marks the file, so that the reader comes to
// its end; what was read counts only if Check succeeds after it.
#pragma once

#include <cstddef>
#include <ctime>
#include <memory>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

/// A mapping as the handler sees it.
struct MappedRange;

class MappedFile {
 public:
  /// Requires: `file` outlives the mapping. Errors: ExitCode::Checkpoint where it has not `bytes` bytes, Environment.
  static auto Map(const Descriptor& file, int64_t bytes) -> ErrorOr<std::unique_ptr<MappedFile>>;
  MappedFile(const MappedFile&) = delete;
  auto operator=(const MappedFile&) -> MappedFile& = delete;
  ~MappedFile();

  auto data() const -> const std::byte* { return data_; }
  /// Whether all that was read so far is what the file held when it was mapped. Errors: ExitCode::Checkpoint: it was
  /// cut short, or written to.
  auto Check() const -> Status;

 private:
  MappedFile(const Descriptor& file, const std::byte* data, size_t bytes, timespec modified);

  const Descriptor& file_;
  const std::byte* data_;
  size_t bytes_;
  timespec modified_;
  MappedRange& range_;
};

}  // namespace shardc
