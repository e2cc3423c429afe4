// Files of ids, one after another, read with pread. They are never mapped: a file cut short by somebody else is a clean
// error, not a signal.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/plan/plan.h"

namespace shardc {

class IdStream {
 public:
  /// What the ids are for, in the words of messages.
  struct Use {
    /// "token": begins "token file ...".
    std::string noun;
    /// The recipe's key that names the files, and what their ids stay below.
    std::string key;
    std::string vocab;
    /// 1 where the format's greatest number says that there is no id; else 0.
    uint8_t none = 0;
  };

  /// Opens all files and checks that each exists, is a regular file and has the header and size of its format.
  /// Errors: ExitCode::RecipeRejected, naming the file, what was found and the remedy.
  static auto Open(const std::vector<std::string>& files, TokenFormat format, int64_t vocab, const Use& use)
      -> ErrorOr<std::unique_ptr<IdStream>>;
  IdStream(const IdStream&) = delete;
  auto operator=(const IdStream&) -> IdStream& = delete;

  auto num_ids() const -> int64_t { return num_ids_; }
  auto num_files() const -> size_t { return files_.size(); }
  /// "2 files, 123456 tokens, xxh3-128 <32 hex digits>": sizes and sampled contents; names and folders do not count.
  auto Fingerprint() const -> const std::string& { return fingerprint_; }

  /// Ids [begin, begin + count) of the stream; -1 where the stream has no id.
  /// Requires: they lie in it.
  /// Errors: an id outside the vocabulary (file, offset, value); a file that changed or cannot be read.
  auto Read(int64_t begin, int64_t count, int32_t* ids) -> Status;

 private:
  struct File {
    std::string path;
    Descriptor descriptor;
    int64_t file_bytes = 0;
    int64_t header_bytes = 0;
    /// First id's number in the stream.
    int64_t begin = 0;
    int64_t num_ids = 0;
  };

  IdStream(TokenFormat format, int64_t vocab, Use use) : format_(format), vocab_(vocab), use_(std::move(use)) {}
  auto AddFile(const std::string& path) -> Status;
  auto TakeFingerprint() -> Status;
  auto ReadOf(const File& file, int64_t first, int64_t count, int32_t* ids) -> Status;

  TokenFormat format_;
  int64_t vocab_;
  Use use_;
  std::vector<File> files_;
  int64_t num_ids_ = 0;
  std::string fingerprint_;
  std::vector<uint8_t> raw_;
};

}  // namespace shardc
