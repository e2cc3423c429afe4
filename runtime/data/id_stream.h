// Files of ids, one after another, read with pread. They are never mapped: a file cut short by somebody else is a clean
// error, not a signal.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/data/data_files.h"

namespace shardc {

class IdStream {
 public:
  /// Opens all files and checks that each exists, is a regular file and has the header and size of its format; of
  /// Megatron's, each entry of the index.
  /// Errors: ExitCode::RecipeRejected, naming the file, what was found and the remedy.
  static auto Open(const FileList& list, TokenFormat format) -> ErrorOr<std::unique_ptr<IdStream>>;
  IdStream(const IdStream&) = delete;
  auto operator=(const IdStream&) -> IdStream& = delete;

  auto num_ids() const -> int64_t { return num_ids_; }
  auto num_files() const -> size_t { return files_.size(); }
  /// "2 files, 123456 tokens, xxh3-128 <32 hex digits>": sizes, both ends (64 KiB) and 16 blocks of 4 KiB of each file;
  /// names and folders do not count. A scan takes the digest of all bytes.
  auto Fingerprint() const -> const std::string& { return fingerprint_; }

  /// Ids [begin, begin + count) of the stream; -1 where the stream has no id.
  /// Requires: they lie in it.
  /// Errors: an id outside the vocabulary (file, offset, value); a file that changed or cannot be read.
  auto Read(int64_t begin, int64_t count, int32_t* ids) -> Status;

 private:
  struct File {
    TokenFile file;
    /// First id's number in the stream.
    int64_t begin = 0;
  };

  IdStream(TokenFormat format, std::string noun, VocabRange range)
      : format_(format), noun_(std::move(noun)), range_(std::move(range)) {}
  auto AddFile(const std::string& path, const FilePurpose& purpose) -> Status;
  auto TakeFingerprint() -> Status;
  auto ReadOf(const TokenFile& file, int64_t first, int64_t count, int32_t* ids) -> Status;

  TokenFormat format_;
  std::string noun_;
  VocabRange range_;
  std::vector<File> files_;
  int64_t num_ids_ = 0;
  std::string fingerprint_;
  std::vector<uint8_t> raw_;
};

}  // namespace shardc
