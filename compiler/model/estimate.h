// What a model takes, before there is a plan of it: sums over its parameters, and over the ops of its forward on one
// token. Sums are doubles, which no sizes overflow.
#pragma once

#include "compiler/model/model_family.h"
#include "compiler/ops/op_facts.h"

namespace shardc {

/// The number of parameters. Requires: heads > 0.
auto EstimateParameters(const ModelFamily& family, const ModelSizes& sizes) -> double;

struct ForwardEstimate {
  /// Elements of everything that the forward computes of one token, logits included.
  double elements = 0;
  /// The sum of the widths of attention over all blocks: products with each earlier position take so many terms.
  double attention_width = 0;
  /// The sizes of the model of which a rank along tp has an equal part, in the order of the ops that say so.
  std::vector<ModelKey> cut;
};

/// Requires: EstimateParameters gives fewer than MaxElements, so that each op's sizes fit 64 bits.
auto EstimateForward(const ModelFamily& family, const ModelSizes& sizes) -> ForwardEstimate;

/// Has the family an op that takes heads of even width only?
auto NeedsEvenHeads(const ModelFamily& family) -> bool;

/// No plan has fewer ops for a block: its forward, what draws its parameters, and the releases of what it computes; if
/// all of it is trained, its backward too.
auto LeastOpsOfBlock(const ModelFamily& family, bool is_trained) -> double;

}  // namespace shardc
