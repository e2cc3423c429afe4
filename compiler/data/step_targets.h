// How many targets the steps of a run have, before it: of each sample of a source, and of each step.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/data/packed_split.h"

namespace shardc {

/// The targets of each sample of a source. Memory: 4 bytes for each sample of a stream; of packed samples 16 bytes for
/// each piece of a document, if its targets are in files of their own, and else nothing beside the documents.
class SampleTargets {
 public:
  /// Makes those of packed samples. `in_files`: the pieces of documents are added, in the order of the files; else each
  /// token but the first of a piece is a target.
  SampleTargets(PackedSplit packed, bool in_files);
  /// Makes those of samples that are cut from a stream, from the pieces of documents that are added.
  SampleTargets(const PackRule& rule, int64_t num_samples);

  /// Counts the samples of the first epoch.
  auto num_samples() const -> int64_t { return num_samples_; }
  /// Adds the targets of tokens of one document that are in one sample.
  auto Add(Interval piece, int64_t targets) -> void;
  /// Returns the targets of the sample with this running number, over all epochs. Requires: num_samples() > 0. Cost:
  /// that of PackedSplit::Row.
  auto Of(int64_t index) -> int64_t;

 private:
  auto OfPiece(Interval piece) const -> int64_t;

  std::optional<PackedSplit> packed_;
  PackRule rule_;
  int64_t num_samples_ = 0;
  bool in_files_ = false;
  /// Begins of pieces of packed documents, and their targets.
  std::vector<std::pair<int64_t, int64_t>> pieces_;
  /// Targets of samples in the order of the stream.
  std::vector<uint32_t> samples_;
};

/// Targets of a step, all of its samples together.
struct StepTargets {
  /// Steps that were counted.
  int64_t steps = 0;
  int64_t least = 0;
  double mean = 0;
  int64_t most = 0;
  /// Steps without any target.
  int64_t without = 0;
};

/// Counts the targets of the first steps of a run: of as many as its sources fill in an epoch of each, and at least
/// one; of a mixture no more than the run has, up to the first one whose weights give no shares. `sources`: one for
/// each of the plan. Returns nothing if a source has no sample, or the first step no shares. Cost: each sample of an
/// epoch is looked at, in the order of the run.
auto CountStepTargets(const Plan& plan, std::vector<SampleTargets>& sources) -> std::optional<StepTargets>;

}  // namespace shardc
