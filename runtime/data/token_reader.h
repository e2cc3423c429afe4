// The token stream: files one after another, cut into samples of seq + 1 ids, read with pread.
//
// Sample i of a split is its tokens[i*seq ... i*seq+seq]; the last `eval_tokens` tokens of the stream are the eval
// split, the rest the train split. A shuffled train split is permuted anew each epoch by a keyed permutation that needs
// no memory (shuffle.h). Files are never mapped: a file cut short by somebody else is a clean error, not a signal.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// One rank's reader. Not safe to use from two threads at once.
class TokenReader {
 public:
  /// Opens all files and checks everything that can be known before the first step: each exists, is a regular file, has
  /// the header and size of its format; together they hold at least one sample.
  /// Errors: ExitCode::RecipeRejected, naming the file, what was found and the remedy.
  static auto Open(const DataSource& source) -> ErrorOr<std::unique_ptr<TokenReader>>;
  ~TokenReader();
  TokenReader(const TokenReader&) = delete;
  auto operator=(const TokenReader&) -> TokenReader& = delete;

  auto num_tokens() const -> int64_t { return num_tokens_; }
  auto num_train_samples() const -> int64_t { return num_train_samples_; }
  auto num_eval_samples() const -> int64_t { return num_eval_samples_; }

  /// "2 files, 123456 tokens, xxh3-128 <32 hex digits>": sizes and sampled contents. Goes into checkpoints and must be
  /// the same at a restart; names and folders of the files do not count.
  auto Fingerprint() const -> const std::string& { return fingerprint_; }

  /// Writes the seq ids of a sample to tokens[0], tokens[stride], ... and their next ids to targets.
  /// A train index is the running number of the sample, over all epochs. An eval index past the end gives tokens 0 and
  /// targets -1.
  /// Errors: an id outside the vocabulary (file, offset, value); a file that changed or cannot be read.
  auto ReadSample(Split split, int64_t index, int32_t* tokens, int32_t* targets, int64_t stride) -> Status;

 private:
  struct File {
    std::string path;
    int descriptor = -1;
    int64_t file_bytes = 0;
    int64_t header_bytes = 0;
    /// First token's number in the stream.
    int64_t begin = 0;
    int64_t num_tokens = 0;
  };

  explicit TokenReader(const DataSource& source);
  auto AddFile(const std::string& path) -> Status;
  auto TakeFingerprint() -> Status;
  /// Reads tokens [begin, begin + count) of the stream into ids_.
  auto ReadIds(int64_t begin, int64_t count) -> Status;
  auto ReadIdsOf(const File& file, int64_t first, int64_t count, int32_t* ids) -> Status;

  DataSource source_;
  std::vector<File> files_;
  int64_t num_tokens_ = 0;
  int64_t num_train_samples_ = 0;
  int64_t num_eval_samples_ = 0;
  std::string fingerprint_;
  std::vector<uint8_t> raw_;
  std::vector<int32_t> ids_;
};

}  // namespace shardc
