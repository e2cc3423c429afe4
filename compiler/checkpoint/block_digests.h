// Digests of the blocks of a rank's file, by which a reader checks what it reads, and that alone. They are in a file
// beside the rank's, 16 bytes per block in order and nothing else; the manifest has the digest of that list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/mesh/mesh.h"

namespace shardc {

/// Bytes of each block of a file but the last, which may be shorter. A fact of version 3 of the format.
constexpr int64_t BlockBytes = int64_t{256} << 10;

constexpr auto NumBlocks(int64_t file_bytes) -> int64_t { return (file_bytes + BlockBytes - 1) / BlockBytes; }
/// Returns the bytes of a file that are its block `block`.
constexpr auto BlockAt(int64_t block, int64_t file_bytes) -> Interval {
  return {block * BlockBytes, std::min(file_bytes, (block + 1) * BlockBytes)};
}

/// The bytes of a block. At a multiple of 64 the kernel copies them in 5/6 of the time.
struct alignas(64) BlockBuffer {
  std::array<std::byte, static_cast<size_t>(BlockBytes)> bytes;
};

/// Returns "rank-00003.blocks" of "rank-00003.safetensors".
auto BlocksName(std::string_view file) -> std::string;

/// Takes the digests of blocks as their bytes come.
class BlockHasher {
 public:
  auto Update(const std::byte* data, int64_t bytes) -> void;
  /// Returns the digests of all blocks. Nothing comes after it.
  auto Finish() -> const std::vector<DigestBytes>&;

 private:
  /// The digest of a block that is not whole yet.
  Digest digest_;
  int64_t filled_ = 0;
  std::vector<DigestBytes> blocks_;
};

/// Reads the list of a file that has `file_bytes` bytes and the list's digest in the manifest. Errors:
/// ExitCode::Checkpoint: no list, one of another length, another list.
auto ReadBlockDigests(const Descriptor& directory, std::string_view file, int64_t file_bytes, std::string_view digest)
    -> ErrorOr<std::vector<DigestBytes>>;

}  // namespace shardc
