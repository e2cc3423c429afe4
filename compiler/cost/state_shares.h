// What is trained and what is frozen, apart: the elements of each, what a rank keeps of them and what it sends for them
// in a step; and the adapters that are trained in the place of projections.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/units.h"
#include "compiler/keys/adapters.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Bytes are those of one rank.
struct StateShare {
  /// Elements of the whole model, without padding.
  int64_t num_elements = 0;
  /// Parameters, their copies in the type that they are computed in, and moments, with padding.
  Bytes state;
  /// Bytes that a step sends: by gathers of parameters, and by sums of gradients.
  Bytes parameters_sent;
  Bytes gradients_sent;
};

struct StateShares {
  StateShare trained;
  StateShare frozen;
};
auto StateSharesOf(const Plan& plan) -> StateShares;

/// Adapters of one rank and scale in the same blocks.
struct AdapterUse {
  LowRank sizes;
  std::vector<int64_t> blocks;
  /// Names of their projections in a block: "self_attn.q_proj".
  std::vector<std::string> projections;

  auto count() const -> int64_t { return std::ssize(blocks) * std::ssize(projections); }
};
/// Returns the adapters of a plan in the order of their first projections.
auto AdapterUsesOf(const Plan& plan) -> std::vector<AdapterUse>;

}  // namespace shardc
