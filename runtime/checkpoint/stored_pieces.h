// Which pieces of which tensors a rank stores in a checkpoint.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/checkpoint/manifest.h"
#include "compiler/mesh/box_interval.h"
#include "compiler/plan/plan.h"
#include "runtime/checkpoint/left_to_base.h"

namespace shardc {

/// What `rank` stores: for each save_shard op of the plan's save section, in order, the owned segments that are not
/// left to a base.
struct StoredPiece {
  SubVectorId sub_vector;
  StateRole role = StateRole::Parameter;
  ParameterId parameter;
  /// Of the logical tensor.
  BoxInterval elements;
  /// In elements of the slice that the rank owns.
  int64_t slice_begin = 0;
};
auto StoredPieces(const Plan& plan, int64_t rank, const LeftToBase& left = {}) -> std::vector<StoredPiece>;

/// Sets version, mesh, base, layouts and tensors of a manifest, which say the same of all ranks.
auto DescribeState(const Plan& plan, const LeftToBase& left, Manifest& manifest) -> void;

}  // namespace shardc
