// The samples of a run: of one token stream, or of a mixture of sources, and the targets that lie beside the one
// stream. Or samples that are made (synthetic.h).
//
// How a source is cut into samples is in source_stream.h, which source a train sample is from in mixture.h. The eval
// split of a mixture is that of its sources, one after another; or it has files of its own. Targets are the next
// tokens, or what the files of a head or of a source have at their positions.
#pragma once

#include <optional>

#include "runtime/data/id_stream.h"
#include "runtime/data/mixture.h"
#include "runtime/data/source_stream.h"
#include "runtime/data/synthetic.h"

namespace shardc {

/// How many samples a run takes from a source, and how many there are in an epoch of it.
struct SourceUse {
  std::string name;
  int64_t samples = 0;
  /// Those of a very long run are estimated.
  bool is_exact = true;
  int64_t epoch_samples = 0;
};

/// What a mixture depends on beside its sources.
struct RunSize {
  int64_t samples_per_step = 0;
  RunSteps steps;
};

/// One rank's reader. Not safe to use from two threads at once.
class TokenReader {
 public:
  using Heads = IdVector<HeadId, TargetHead>;

  /// Opens all files and checks everything that can be known before the first step: each source holds at least one
  /// sample, and as many targets as tokens. Cost: if documents are asked for, those of DocumentTable::Find.
  /// Requires: a mixture has no heads, tokens that are made have none, and 1 to MostMixedSamples samples per step.
  /// Errors: ExitCode::RecipeRejected, naming the file or the source, what was found and the remedy; weights without a
  ///   share at step 0.
  static auto Open(const DataSource& data, const Heads& heads = {}, RunSize run = {})
      -> ErrorOr<std::unique_ptr<TokenReader>>;

  /// Of all sources together. Of tokens that are made there is no number, nor of their train samples: both are 0.
  auto num_tokens() const -> int64_t;
  auto num_train_samples() const -> int64_t;
  auto num_eval_samples() const -> int64_t;

  /// The fingerprint of the tokens, and after it those of each head's targets and of data.eval; of a mixture, those of
  /// its sources. Goes into checkpoints and must be the same at a restart.
  auto Fingerprint() const -> std::string;
  /// Of each source by itself.
  auto SourceFingerprints() const -> std::vector<std::string>;

  /// What the run takes from each source of a mixture; nothing of the one stream.
  /// Errors and cost: those of CountRunSamples.
  auto CountRun() const -> ErrorOr<std::vector<SourceUse>>;

  /// Writes the seq ids of a sample to tokens[0], tokens[stride], ... and its targets to targets: the next ids, or
  /// those of a head or source, -1 where it has none. In a packed sample the last token of a document has none. A train
  /// index is the running number of the sample, over all epochs. An eval
  /// index past the end gives tokens 0 and targets -1. Errors: those of IdStream::Read and Mixture::At.
  auto ReadSample(Split split, int64_t index, int32_t* tokens, int32_t* targets, int64_t stride, HeadId head = {})
      -> Status;
  /// Writes where documents lie in a sample, at [0], [stride], ... of both: the first place of the document of each
  /// place, 0 if it began before the sample, and how many tokens of the document come before that place. Padding, and
  /// what lies past the end of the eval split, is documents of one place. Errors: those of ReadSample.
  auto ReadDocuments(Split split, int64_t index, int32_t* starts, int32_t* positions, int64_t stride) -> Status;
  /// Returns the name of the source of a mixture that has a sample; empty if one stream, data.eval, ids that were set
  /// or nothing has it. Errors: those of Mixture::At.
  auto NameOfSource(Split split, int64_t index) -> ErrorOr<std::string>;
  /// The targets of a head alone.
  auto ReadTargets(Split split, int64_t index, HeadId head, int32_t* targets, int64_t stride) -> Status;
  /// Gives the eval split these ids in the place of its own: sample i has seq of them from id i * seq on. What comes
  /// after the last has id 0, and no position has a target.
  auto SetEvalIds(std::vector<int32_t> ids) -> void { eval_ids_ = std::move(ids); }
  /// Returns true if a position of the eval split has a target. Cost: reads targets until it finds one.
  auto HoldsEvalTarget() -> ErrorOr<bool>;

 private:
  /// Tokens of a sample.
  struct SourceSample {
    SourceStream* source = nullptr;
    /// Number of a source of the plan; -1: data.eval, or tokens that are made.
    int64_t number = -1;
    std::vector<DocumentPiece> pieces;
  };

  explicit TokenReader(const DataSource& data) : data_(data) {}
  /// Nothing past the end of the eval split.
  auto SampleAt(Split split, int64_t index) -> ErrorOr<std::optional<SourceSample>>;
  auto EvalSampleAt(int64_t index) -> std::optional<SourceSample>;
  auto exists(Split split, int64_t index) const -> bool {
    return split == Split::Train || eval_ids_ || index < num_eval_samples();
  }

  /// Reads the ids of a sample, and one more unless it is packed, to ids_.
  auto ReadIds(const SourceSample& sample) -> Status;
  /// Writes what a file of targets has for each place of a sample.
  auto ReadTargets(IdStream& file, const SourceSample& sample, int32_t* targets, int64_t stride) -> Status;
  /// Writes that no place has a target.
  auto WriteNone(int32_t* targets, int64_t stride) const -> void;

  DataSource data_;
  RunSize run_;
  std::optional<SyntheticSamples> synthetic_;
  std::vector<SourceStream> sources_;
  /// The files of data.eval; unset if the eval split is cut from the sources.
  std::optional<SourceStream> eval_;
  std::optional<Mixture> mixture_;
  IdVector<HeadId, TargetHead> heads_;
  IdVector<HeadId, std::unique_ptr<IdStream>> targets_;
  std::vector<int32_t> ids_;
  std::optional<std::vector<int32_t>> eval_ids_;
};

}  // namespace shardc
