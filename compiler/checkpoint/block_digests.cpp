#include "compiler/checkpoint/block_digests.h"

#include <algorithm>

namespace shardc {

auto BlocksName(std::string_view file) -> std::string {
  return std::string(file.substr(0, file.rfind('.'))) + ".blocks";
}

auto BlockHasher::Update(const std::byte* data, int64_t bytes) -> void {
  while (bytes > 0) {
    const int64_t size = std::min(bytes, BlockBytes - filled_);
    if (size == BlockBytes) {
      blocks_.push_back(DigestBytesOf(data, size));
    } else {
      digest_.Update(data, size);
      filled_ += size;
    }
    if (filled_ == BlockBytes) {
      Finish();
    }
    data += size;
    bytes -= size;
  }
}

auto BlockHasher::Finish() -> const std::vector<DigestBytes>& {
  if (filled_ > 0) {
    blocks_.push_back(digest_.Bytes());
    digest_.Reset();
    filled_ = 0;
  }
  return blocks_;
}

auto ReadBlockDigests(const Descriptor& directory, std::string_view file, int64_t file_bytes, std::string_view digest)
    -> ErrorOr<std::vector<DigestBytes>> {
  const auto list = OpenFileAt(directory, BlocksName(file));
  const auto bytes = list ? FileBytes(*list) : list.error();
  FAIL_IF(!bytes, ExitCode::Checkpoint, "{}", bytes.error().message);
  const int64_t num_blocks = NumBlocks(file_bytes);
  const int64_t expected = num_blocks * static_cast<int64_t>(sizeof(DigestBytes));
  FAIL_IF(*bytes != expected, ExitCode::Checkpoint, "{} has {} bytes, and the digests of {} blocks have {}",
          list->path(), *bytes, num_blocks, expected);
  std::vector<DigestBytes> blocks(static_cast<size_t>(num_blocks));
  RETURN_IF_ERROR(ReadAll(*list, blocks.data(), expected, 0));
  const std::string actual = ToText(DigestBytesOf(blocks.data(), expected));
  FAIL_IF(actual != digest, ExitCode::Checkpoint, "{} is damaged: its digest is {}, the manifest says {}", list->path(),
          actual, digest);
  return blocks;
}

}  // namespace shardc
