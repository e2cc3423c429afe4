// A pass is a function from plan to plan. It does not time, log, verify or ask whether it is enabled: pipeline.cpp does
// that around every pass.
#pragma once

#include "compiler/diag/diagnostics.h"
#include "compiler/ops/ops.h"
#include "compiler/plan/plan.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

struct SeedCheckpoint;

struct PassContext {
  const Recipe* recipe;
  Diagnostics* diags;
  /// Null where the recipe starts from scratch.
  const SeedCheckpoint* seed = nullptr;
};

/// One per row of schemas/passes.def, defined in the file of its name.
/// Errors: diagnostics in context.diags; the Error then has no message of its own.
#define PASS(Name, stem, doc) auto Name(Plan plan, PassContext& context)->ErrorOr<Plan>;
#include "schemas/passes.def"

/// Returns the Error of a pass that has emitted diagnostics.
inline auto Rejected() -> Error { return Error{ExitCode::RecipeRejected, ""}; }

/// Returns the recipe line of a key, as the origin of an op: `OriginOf(recipe.shard.units, "shard.units")`.
template <class Leaf>
auto OriginOf(const Leaf& leaf, OriginKey key) -> Origin {
  return Origin{leaf.at.source == 0 ? leaf.at.line : 0, key};
}

/// Returns the element type that units compute in unless an override says otherwise. Requires: a checked recipe.
auto ComputeType(const Recipe& recipe) -> DType;

/// Belongs to the second half of a step: backward, or computed again for it.
inline auto IsBackward(const Op& op) -> bool { return op.phase == Phase::Backward || op.phase == Phase::Recompute; }

}  // namespace shardc
