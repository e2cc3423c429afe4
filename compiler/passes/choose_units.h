// What a recipe says of units: which parameters are gathered together, and whether they are given back after forward.
#pragma once

#include <string>
#include <vector>

#include "compiler/passes/pass.h"

namespace shardc {

struct UnitChoice {
  std::string name;
  bool reshard_after_forward = true;
  /// The key that decided on resharding.
  Origin origin;
  /// In which parameters are gathered and computed with.
  DType compute = DType::F32;
  /// In which parameters are kept.
  DType master = DType::F32;
  /// In which those are kept that are frozen.
  DType frozen = DType::F32;
  /// In which gradients go to those that sum them.
  DType reduce = DType::F32;
  /// In the order of their use, which is that of the model's parameters.
  std::vector<ParameterId> parameters;
};

/// Returns the units in the order of their first use; each parameter belongs to one of them.
///   1. what a table [[shard.unit]] matches forms a unit of its own; the rest follow the preset of `shard.units`:
///      block       each block; the parameters outside the blocks before them, and after, by where they are read;
///                  or all of these as one unit, if one is read on both sides (a tied embedding)
///      torchtitan  the same, but what comes after the blocks is never given back: backward begins with it
///      blocks:K    the same as block, but K consecutive blocks per unit
///      size:N      parameters in their order, as many per unit as fit N bytes of the compute type
///   2. `shard.reshard_after_forward` decides for each unit, for several blocks by the last of them
///   3. [[shard.override]] decides for the units that it names
///   4. `precision.compute`, `master` and `reduce` hold for each unit, but for those that [[precision.override]] names;
///      `precision.frozen` holds for what is frozen in any of them
/// Requires: declared parameters.
/// Errors: unit-duplicate, unit-unused, unit-name-taken, override-duplicate, override-unused.
/// Source: torchtitan, torchtitan/models/llama3/infra/parallelize.py, apply_fsdp.
auto ChooseUnits(const Plan& plan, PassContext& context) -> ErrorOr<std::vector<UnitChoice>>;

}  // namespace shardc
