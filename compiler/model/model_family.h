// What the compiler knows of a model family: its parameters, what each of them is, and its forward. Passes and checks
// ask for these, and for the facts of the ops that the forward is made of; no one asks which family it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/parameter_kind.h"
#include "compiler/model/forward_builder.h"

namespace shardc {

/// Where parameters outside the blocks are read.
enum class Side { Before, After, Both };

struct ParameterSpec {
  /// Of a parameter of a block: without the block's own name, as the family declares it.
  std::string name;
  ParameterKind kind = ParameterKind::Norm;
  /// Logical: of the whole matrix [outputs, inputs], or of a vector.
  Dims shape;
  /// Inputs of the whole matrix, for a bias those of the matrix of its projection; of another vector its length.
  int64_t fan_in = 0;
  /// What ranks that share it hold, over each axis of the mesh; axes of one rank cut nothing. A matrix cut along dim 0
  /// takes whole inputs and gives a part of the outputs; along dim 1, the other way round.
  Placements placement = {};
  Side side = Side::Before;
  /// What `recompute.save` calls the product with it; empty if there is no name for that.
  std::string_view projection = {};
  /// -1 outside the blocks.
  int64_t layer = -1;
  /// The rule of its initial values where no [[init.rule]] matches it, whatever the scheme; empty for a parameter that
  /// has the scheme's. Set for those of adapters alone, which are loaded only from what has adapters.
  std::string_view init = {};
};
using ParameterSpecs = std::vector<ParameterSpec>;

/// Cut along a dim over every axis whose ranks share each matrix.
auto CutAlong(int dim) -> Placements;

struct ModelFamily {
  /// The parameters outside the blocks, in the order of their use. `side` says which ones come before the blocks.
  auto(*outside)(const ModelSizes&) -> ParameterSpecs;
  /// Those of one block, in the order of their use. All blocks are alike.
  auto(*block)(const ModelSizes&) -> ParameterSpecs;
  /// Of the builder's tokens.
  auto(*forward)(ForwardBuilder&, const ModelSizes&) -> ModelOutput;
};

/// The word of `recompute.save` for the results of attention; the others are the projections of a block.
inline constexpr std::string_view SavedAttention = "attention";

auto ModelFamilyOf(Family family) -> const ModelFamily&;

/// "model.layers.3.": what the names of a block's parameters begin with.
auto BlockPrefix(int64_t layer) -> std::string;

/// All parameters of a model in the order of their use, with their whole names; those of an adapter follow its
/// projection.
auto ParametersOf(const ModelFamily& family, const ModelSizes& sizes) -> ParameterSpecs;

/// Families are files of this folder, named after the rows of schemas/families.def; each defines its own.
#define FAMILY(Name, ...) extern const ModelFamily Name##Family;
#include "schemas/families.def"

}  // namespace shardc
