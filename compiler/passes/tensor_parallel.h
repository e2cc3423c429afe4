// Tensor and sequence parallelism: the forward of one rank of the tp axis.
#pragma once

#include "compiler/plan/plan.h"

namespace shardc {

/// Rewrites the forward ops of `step` and `eval`, built for whole matrices, to what one coordinate of tp computes, with
/// the collectives that takes. Requires: mesh.tp > 1; the parameters' placements are set.
///
/// Residuals and norms are cut along the sequence. Before a matrix that is cut along its rows (q, k, v, gate, up,
/// head) the sequence is gathered; after one that is cut along its columns (o, down), and after the embedding, whose
/// rows are dealt out too, partial sums are reduce-scattered over the sequence. Activations are sequence-major, so
/// neither copies. Logits stay cut over the vocabulary: only each row's log_sum_exp is gathered. Source: Korthikanti et
/// al. 2022, "Reducing Activation Recomputation in Large Transformer Models", sec. 4.2.2. `origin`: what made the
/// collectives. Errors: an op that no rank can compute of its part.
auto SpreadOverTp(Plan& plan, const Origin& origin) -> Status;

}  // namespace shardc
