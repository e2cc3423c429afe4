// The matrices of a checkpoint with their adapters added: W + scale B A.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/checkpoint/stored_tensor.h"

namespace shardc {

/// Returns true if a parameter of the manifest is of an adapter.
auto HasAdapters(const Manifest& manifest) -> bool;

/// Checks that each adapter of the manifest has the matrices, and the rank, that its [adapter] gives it. Errors:
/// ExitCode::Checkpoint.
auto CheckAdapters(const Manifest& manifest) -> Status;

/// The product that the adapter of one matrix adds to it.
class MergedAdapter {
 public:
  /// Reads A and B of `weight`, if the manifest has them. Requires: CheckAdapters. Errors: ExitCode::Checkpoint.
  static auto Read(CheckpointFiles* files, const Manifest& manifest, const std::string& weight)
      -> ErrorOr<MergedAdapter>;

  /// Returns false where the matrix has no adapter.
  auto is_set() const -> bool { return rank_ > 0; }
  /// Adds to elements [begin, begin + elements.size()) of the matrix, in f32: each sum over the rank from its first
  /// term to its last, times the scale, added once.
  auto AddTo(int64_t begin, std::span<float> elements) -> void;

 private:
  int64_t rank_ = 0;
  int64_t inputs_ = 0;
  float scale_ = 0;
  /// A [rank, inputs] and B [outputs, rank].
  std::vector<float> down_;
  std::vector<float> up_;
  /// A part of a row of B A.
  std::vector<float> row_;
};

}  // namespace shardc
