// A rank's file of a checkpoint, open for reading. Each block that a read touches is read whole and compared with its
// digest: straight into the destination if all of it is wanted, else into a buffer that is kept, so that neighbours in
// one block cost one read. Files of versions 1 and 2, and those of Hugging Face, have no digests of blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/checkpoint/block_digests.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/safetensors.h"

namespace shardc {

/// The block that was read last of each file, for the files of one reader. Two files whose numbers differ by a multiple
/// of MostKept share a buffer.
class KeptBlocks {
 public:
  struct Kept {
    /// -1 if it holds nothing.
    int64_t file = -1;
    int64_t block = 0;
    std::unique_ptr<BlockBuffer> buffer;
  };
  auto NumberOfNextFile() -> int64_t { return num_files_++; }
  auto Of(int64_t file) -> Kept& { return kept_[static_cast<size_t>(file) % MostKept]; }

 private:
  /// 16 MiB.
  static constexpr size_t MostKept = 64;

  int64_t num_files_ = 0;
  std::array<Kept, MostKept> kept_;
};

/// Checks a file of a manifest: its size, and its list of digests, or without one the digest of all its bytes. Errors:
/// ExitCode::Checkpoint, naming the file.
auto CheckCheckpointFile(const Descriptor& directory, const Manifest& manifest, const std::string& name) -> Status;

class CheckpointFile {
 public:
  /// Opens a file of a manifest, checks its size and its list of digests, and reads its header. `kept` outlives it.
  /// Errors: ExitCode::Checkpoint, naming the file.
  static auto Open(const Descriptor& directory, const Manifest& manifest, const std::string& name, KeptBlocks* kept)
      -> ErrorOr<std::unique_ptr<CheckpointFile>>;

  auto descriptor() const -> const Descriptor& { return file_; }
  auto bytes() const -> int64_t { return bytes_; }
  /// Returns false if nothing says what its blocks are.
  auto has_digests() const -> bool { return !digests_.empty(); }
  /// Returns where the bytes of a tensor are in the file. Errors: ExitCode::Checkpoint: it has none of this name, type
  /// and size.
  auto Find(const std::string& tensor, DType dtype, int64_t num_elements) const -> ErrorOr<Interval>;
  /// Reads bytes from an offset on. Errors: ExitCode::Checkpoint: a block is damaged; the message names its bytes and
  /// the tensors in it.
  auto Read(void* to, int64_t bytes, int64_t offset) -> Status;
  /// Compares a block with its digest. Requires: has_digests.
  auto CheckBlock(int64_t block, const std::byte* bytes) const -> Status;

 private:
  CheckpointFile(Descriptor file, int64_t bytes, std::vector<DigestBytes> digests, KeptBlocks* kept);

  auto ReadHeader() -> Status;
  auto ReadBlock(int64_t block, std::byte* to) -> Status;
  /// Returns what the bytes hold, for a message.
  auto ContentsOf(Interval bytes) const -> std::string;

  Descriptor file_;
  int64_t bytes_;
  /// Empty if the manifest's version has none.
  std::vector<DigestBytes> digests_;
  KeptBlocks& kept_;
  int64_t number_;
  SafetensorsHeader header_;
  std::map<std::string_view, const SafetensorsTensor*> tensors_;
};

}  // namespace shardc
