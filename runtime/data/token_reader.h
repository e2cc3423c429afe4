// The token stream cut into samples of seq + 1 ids, and the targets that lie beside it.
//
// Sample i of a split is its tokens[i*seq ... i*seq+seq]; the last `eval_tokens` tokens of the stream are the eval
// split, the rest the train split. A shuffled train split is permuted anew each epoch by a keyed permutation that needs
// no memory (shuffle.h). Targets are the next tokens, or what a head's files have in their places.
#pragma once

#include <optional>

#include "runtime/data/id_stream.h"

namespace shardc {

/// One rank's reader. Not safe to use from two threads at once.
class TokenReader {
 public:
  using Heads = IdVector<HeadId, TargetHead>;

  /// Opens all files and checks everything that can be known before the first step: together they hold at least one
  /// sample, and as many targets as tokens.
  /// Errors: ExitCode::RecipeRejected, naming the file, what was found and the remedy.
  static auto Open(const DataSource& source, const Heads& heads = {}) -> ErrorOr<std::unique_ptr<TokenReader>>;

  auto num_tokens() const -> int64_t { return tokens_->num_ids(); }
  auto num_train_samples() const -> int64_t { return num_train_samples_; }
  auto num_eval_samples() const -> int64_t { return num_eval_samples_; }

  /// That of the tokens, and of each head's targets behind it. Goes into checkpoints and must be the same at a restart.
  auto Fingerprint() const -> std::string;

  /// Writes the seq ids of a sample to tokens[0], tokens[stride], ... and its targets to targets: the next ids, or
  /// those of a head, -1 where it has none. A train index is the running number of the sample, over all epochs. An eval
  /// index past the end gives tokens 0 and targets -1. Errors: those of IdStream::Read.
  auto ReadSample(Split split, int64_t index, int32_t* tokens, int32_t* targets, int64_t stride, HeadId head = {})
      -> Status;
  /// The targets of a head alone.
  auto ReadTargets(Split split, int64_t index, HeadId head, int32_t* targets, int64_t stride) -> Status;

 private:
  explicit TokenReader(const DataSource& source) : source_(source) {}
  /// The first token of a sample; nothing past the end of the eval split.
  auto BeginOf(Split split, int64_t index) const -> std::optional<int64_t>;

  DataSource source_;
  std::unique_ptr<IdStream> tokens_;
  IdVector<HeadId, TargetHead> heads_;
  IdVector<HeadId, std::unique_ptr<IdStream>> targets_;
  int64_t num_train_samples_ = 0;
  int64_t num_eval_samples_ = 0;
  std::vector<int32_t> ids_;
};

}  // namespace shardc
