// The samples of one source, or of data.eval: which tokens each has, and where the documents in it begin.
//
// Sample i of a split is its tokens[i*seq ... i*seq+seq]; the last `eval_tokens` tokens are the eval split, the rest
// the train split. A shuffled train split is permuted in each epoch by another keyed permutation, which needs no memory
// (shuffle.h); that of a source with a name by a seed of its own. With `data.pack` = best-fit a sample is a row of
// whole documents (packed_split.h), in the eval split in the order of the files. A border of splits ends a document.
#pragma once

#include <memory>
#include <vector>

#include "compiler/data/packed_split.h"
#include "runtime/data/id_stream.h"

namespace shardc {

class SourceStream {
 public:
  /// Opens the files of `source`, one of `data`, and checks that each split that is asked for has a sample.
  /// Errors: ExitCode::RecipeRejected, naming the file or the source, what was found and the remedy.
  static auto Open(const DataSource& data, const TokenSource& source) -> ErrorOr<SourceStream>;
  /// Opens the files of data.eval: all of their tokens are the eval split. Errors: as Open, and if they hold other
  /// samples than when the plan was made.
  static auto OpenEval(const DataSource& data) -> ErrorOr<SourceStream>;

  auto tokens() -> IdStream& { return *tokens_; }
  /// Returns the targets that lie beside the tokens; null if the next tokens are the targets.
  auto targets() -> IdStream* { return targets_.get(); }
  auto num_tokens() const -> int64_t { return tokens_->num_ids(); }
  /// Counts the train samples of the first epoch. Cost: those of RowsOfEpoch, if documents are packed.
  auto num_train_samples() const -> int64_t;
  auto num_eval_samples() const -> int64_t { return num_eval_samples_; }
  /// Returns a text of what the samples depend on: ids, targets, where documents end, and what packing does to them.
  auto Fingerprint() const -> const std::string& { return fingerprint_; }

  /// Returns the tokens of the train sample with this running number, over all epochs: one piece of seq tokens, which
  /// the targets go past by one, or the documents of a packed row. Requires: index >= 0.
  auto TrainSample(int64_t index) const -> std::vector<DocumentPiece>;
  /// Returns those of an eval sample. Requires: 0 <= index < num_eval_samples().
  auto EvalSample(int64_t index) const -> std::vector<DocumentPiece>;
  /// Cuts the piece of a sample that is not packed into its documents. Requires: they were asked for.
  auto DocumentsIn(Split split, const DocumentPiece& sample) const -> std::vector<DocumentPiece>;

 private:
  SourceStream() = default;
  auto FindDocuments(const DataSource& data, const FileList& list, int64_t document_end) -> Status;
  auto PackEval(const DataSource& data, TooLong too_long) -> Status;
  auto TakeFingerprint(TooLong too_long) -> void;
  auto ids_of_train() const -> Interval { return {0, num_tokens() - eval_tokens_}; }
  auto ids_of_eval() const -> Interval { return {num_tokens() - eval_tokens_, num_tokens()}; }

  std::unique_ptr<IdStream> tokens_;
  std::unique_ptr<IdStream> targets_;
  /// Null if documents are nothing to the model.
  std::shared_ptr<const DocumentTable> documents_;
  /// Null if documents are not packed.
  std::unique_ptr<PackedSplit> packed_train_;
  std::unique_ptr<PackedSplit> packed_eval_;
  SampleOrder order_ = SampleOrder::Shuffled;
  uint64_t seed_ = 0;
  int64_t seq_ = 0;
  int64_t eval_tokens_ = 0;
  int64_t num_train_samples_ = 0;
  int64_t num_eval_samples_ = 0;
  std::string fingerprint_;
};

}  // namespace shardc
