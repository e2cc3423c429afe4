// The order of the checks: single values first, as the rules that follow skip what is broken already.

#include "compiler/check/check_recipe.h"

#include "compiler/check/check_context.h"

namespace shardc {

auto CheckRecipe(const Recipe& recipe, Diagnostics& diagnostics, FileChecks files) -> void {
  CheckContext context(recipe, diagnostics);
  CheckValues(context);
  CheckOwnedKeys(context);
  CheckModel(context);
  CheckMesh(context);
  CheckShard(context);
  CheckPrecision(context);
  CheckAdapter(context);
  CheckRecompute(context);
  CheckLoss(context);
  CheckInit(context);
  CheckOptimizer(context);
  CheckData(context);
  CheckDataFiles(context, files);
  CheckBatch(context);
  CheckTrain(context);
  CheckCheckpoint(context);
  CheckStart(context);
  CheckRun(context);
  CheckPlanSize(context);
  diagnostics.AddWaiting(context.num_waiting());
}

auto ReadAndCheck(const std::string& path, std::string text, const std::vector<std::string>& overrides,
                  SourceSet& sources, Diagnostics& diagnostics, const ReadOptions& options) -> ErrorOr<Recipe> {
  const int num_errors = diagnostics.num_errors();
  Recipe recipe = ReadSoundParts(path, std::move(text), overrides, sources, diagnostics, options.left_out);
  if (!options.resolved_from.empty()) {
    recipe.path = options.resolved_from;
  }
  if (options.num_hosts > 1) {
    SetHosts(options.num_hosts, recipe, sources, diagnostics);
  }
  CheckRecipe(recipe, diagnostics, options.files);
  if (diagnostics.num_errors() > num_errors) {
    // Tables whose patterns the passes match.
    const size_t tables = recipe.init.rule.size() + recipe.optimizer.group.size() + recipe.shard.unit.size() +
                          recipe.shard.override.size() + recipe.precision.override.size();
    diagnostics.AddWaiting(static_cast<int>(tables));
    return Error{ExitCode::RecipeRejected, ""};
  }
  return recipe;
}

}  // namespace shardc
