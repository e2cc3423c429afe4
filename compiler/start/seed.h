// The checkpoint that a recipe starts from, as its manifest tells, and what of it goes into which parameter: a total
// match, in both directions.
//
// A parameter is loaded from the tensor of its name, or from the part of a tensor that loaded_parts.h says, unless a
// glob of `missing` matches it; then it begins by its init rule. A tensor is loaded, or a rule reads it, or a glob of
// `unused` matches it, and only one of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/stage.h"
#include "compiler/model/model_family.h"
#include "compiler/plan/plan.h"
#include "compiler/recipe/recipe.h"
#include "compiler/start/loaded_parts.h"

namespace shardc {

struct SeedCheckpoint {
  /// The path of the directory, as resolved against the recipe's folder.
  std::string path;
  /// The digest by which a plan knows the seed.
  std::string digest;
  Manifest manifest;
  /// The directory of the adapter whose tensors the manifest has beside its own, and the digest of what was read of
  /// it; empty if start.first names none.
  std::string adapter_path;
  std::string adapter_digest;
  /// Set where the run continues it.
  std::optional<Stage> stage;
};

/// Returns the path that start.first names; empty if the recipe starts from scratch.
auto SeedPathOf(const Recipe& recipe) -> std::string;

/// Reads what start.first names, a checkpoint or a model of Hugging Face: that in the directory, or, if it is gone,
/// what the run put on record in `run_dir` when it began. Of a run directory that is continued it is the newest
/// checkpoint, or the one that the run began from. Nothing where the recipe starts from scratch, or with an error.
/// Errors: seed-unreadable, seed-contradicts-config, continued-state. Warnings: seed-of-another-model.
auto ReadSeed(const Recipe& recipe, const std::string& run_dir, Diagnostics& diags) -> std::optional<SeedCheckpoint>;

/// Returns true for the parameters that are loaded.
/// Errors: seed-missing-glob, seed-parameter-missing, seed-shape.
auto ChooseLoaded(const ParameterSpecs& specs, const LoadedParts& parts, const SeedCheckpoint& seed,
                  const Recipe& recipe, Diagnostics& diags) -> std::vector<bool>;

/// Uses of each tensor that is used: "loaded", "read by the rule of lm_head.weight".
using TensorUses = std::map<std::string, std::string, std::less<>>;

/// Errors: seed-unused-glob, seed-tensor-used, seed-tensor-left.
auto CheckLeftTensors(const SeedCheckpoint& seed, const Recipe& recipe, const TensorUses& uses, Diagnostics& diags)
    -> void;

/// Returns the seed as the plan states it, with the tensors that are used.
auto SeedOf(const SeedCheckpoint& seed, const TensorUses& uses) -> Seed;

/// Puts what the run continues into a plan whose parameters and sources are there. Errors: continued-state.
auto ContinueSeed(const SeedCheckpoint& seed, const Recipe& recipe, Plan& plan, Diagnostics& diags) -> void;

}  // namespace shardc
