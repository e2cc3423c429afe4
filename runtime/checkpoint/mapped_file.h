// A file in memory, all of it, for reading at any offset. If the file has digests of blocks, a reader says which bytes
// it is about to read. If somebody cuts the file short meanwhile, the kernel sends SIGBUS to who reads what is gone. A
// handler puts zeros there instead and marks the file, so that the reader comes to its end; what was read counts only
// if Check succeeds after it.
#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/checkpoint/checkpoint_file.h"

namespace shardc {

/// A mapping as the handler sees it.
struct MappedRange;

class MappedFile {
 public:
  /// Requires: `file` outlives the mapping. Errors: ExitCode::Checkpoint where it has not `bytes` bytes, Environment.
  static auto Map(const Descriptor& file, int64_t bytes) -> ErrorOr<std::unique_ptr<MappedFile>>;
  static auto Map(const CheckpointFile* file) -> ErrorOr<std::unique_ptr<MappedFile>>;
  MappedFile(const MappedFile&) = delete;
  auto operator=(const MappedFile&) -> MappedFile& = delete;
  ~MappedFile();

  auto data() const -> const std::byte* { return data_; }
  /// Compares the blocks of these bytes with their digests, each when it is first asked for; Check reports the outcome.
  /// Nothing if the file has no digests. Requires: one thread at a time.
  auto CheckBytes(const std::byte* first, int64_t bytes) -> void;
  /// Returns success if what was read so far is what the file held when it was mapped, and what its digests say.
  /// Errors: ExitCode::Checkpoint: it was cut short, or written to, or is damaged.
  auto Check() const -> Status;

 private:
  MappedFile(const Descriptor& file, const std::byte* data, size_t bytes, timespec modified);

  const Descriptor& file_;
  const std::byte* data_;
  size_t bytes_;
  timespec modified_;
  MappedRange& range_;
  /// Null if the file has no digests.
  const CheckpointFile* digests_ = nullptr;
  std::vector<bool> are_checked_;
  /// The error of the first damaged block.
  Status damage_ = Success{};
};

}  // namespace shardc
