// The order of the checks: single values first, as the rules that follow skip what is broken already.

#include "compiler/check/check_recipe.h"

#include "compiler/check/check_context.h"

namespace shardc {

auto CheckRecipe(const Recipe& recipe, Diagnostics& diagnostics, FileChecks files) -> bool {
  CheckContext context(recipe, diagnostics);
  CheckValues(context);
  CheckOwnedKeys(context);
  CheckModel(context);
  CheckMesh(context);
  CheckShard(context);
  CheckPrecision(context);
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
  const bool has_model = HasSoundModel(context);
  diagnostics.AddWaiting(context.num_waiting());
  return has_model;
}

}  // namespace shardc
