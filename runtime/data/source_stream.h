// The tokens of one source cut into samples of seq + 1 ids.
//
// Sample i of a split is its tokens[i*seq ... i*seq+seq]; the last `eval_tokens` tokens are the eval split, the rest
// the train split. A shuffled train split is permuted in each epoch by another keyed permutation, which needs no memory
// (shuffle.h); that of a source with a name by a seed of its own.
#pragma once

#include <memory>

#include "runtime/data/id_stream.h"

namespace shardc {

class SourceStream {
 public:
  /// Opens the files of `source`, one of `data`, and checks that each split that is asked for has a sample.
  /// Errors: ExitCode::RecipeRejected, naming the file or the source, what was found and the remedy.
  static auto Open(const DataSource& data, const TokenSource& source) -> ErrorOr<SourceStream>;

  auto tokens() -> IdStream& { return *tokens_; }
  auto num_tokens() const -> int64_t { return tokens_->num_ids(); }
  auto num_train_samples() const -> int64_t { return num_train_samples_; }
  auto num_eval_samples() const -> int64_t { return num_eval_samples_; }
  auto Fingerprint() const -> const std::string& { return tokens_->Fingerprint(); }

  /// The first token of the train sample with this running number, over all epochs. Requires: index >= 0.
  auto BeginOfTrain(int64_t index) const -> int64_t;
  /// The same of an eval sample. Requires: 0 <= index < num_eval_samples().
  auto BeginOfEval(int64_t index) const -> int64_t;

 private:
  SourceStream() = default;

  std::unique_ptr<IdStream> tokens_;
  SampleOrder order_ = SampleOrder::Shuffled;
  uint64_t seed_ = 0;
  int64_t seq_ = 0;
  int64_t eval_tokens_ = 0;
  int64_t num_train_samples_ = 0;
  int64_t num_eval_samples_ = 0;
};

}  // namespace shardc
