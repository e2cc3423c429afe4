// How far the tensors of two checkpoints are apart, whatever the meshes that saved them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/checkpoint/manifest.h"

namespace shardc {

/// A checkpoint whose files can be read. Both outlive the comparison.
struct OpenCheckpoint {
  const Descriptor* directory = nullptr;
  const Manifest* manifest = nullptr;
};

struct TensorDifference {
  std::string name;
  StateRole role = StateRole::Parameter;
  int64_t num_elements = 0;
  /// Elements that differ. Two NaNs do not differ.
  int64_t num_different = 0;
  /// NaN if one of two elements alone is NaN.
  double largest = 0;
  /// The element with the largest difference, row-major, and its values.
  int64_t at = 0;
  double a = 0;
  double b = 0;
};

struct CheckpointComparison {
  /// In the order of roles and names.
  std::vector<TensorDifference> tensors;
  /// Tensors that one of the two lacks, or that have other shapes: "model.norm.weight: [5] and [6]".
  std::vector<std::string> unlike;
};

/// Compares the tensors that both have. `progress` is told how many elements were compared. Requires: the pieces of
/// both cover their tensors (CheckCover). Errors: Checkpoint: a file cannot be read.
auto CompareCheckpoints(const OpenCheckpoint& a, const OpenCheckpoint& b, const std::function<void(int64_t)>& progress)
    -> ErrorOr<CheckpointComparison>;

}  // namespace shardc
