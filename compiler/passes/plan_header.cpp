#include "compiler/passes/plan_header.h"

#include "compiler/check/check_recipe.h"
#include "compiler/check/recipe_data.h"
#include "compiler/data/packed_files.h"
#include "compiler/plan/exchange.h"
#include "compiler/plan/header.h"
#include "compiler/recipe/resolved.h"
#include "compiler/recipe/resolved_path.h"
#include "compiler/recipe/run_id.h"

namespace shardc {

auto RunDirOf(const Recipe& recipe) -> std::string { return ResolvedPath(recipe, "runs/" + RunIdOf(recipe)); }

static auto ResolveComm(const Recipe& recipe) -> Comm {
  if (*recipe.run.comm != Comm::Auto) {
    return *recipe.run.comm;
  }
  if (*recipe.mesh.hosts == 1) {
    return Comm::Shm;
  }
  const bool is_gpu = FactsOf(*recipe.run.device).family == DeviceFamily::Cuda;
  return !is_gpu ? Comm::Gloo : *recipe.mesh.hosts <= MostExchangingGpus ? Comm::Nccl : Comm::NcclRing;
}

auto WriteHeader(Plan& plan, const Recipe& recipe) -> void {
  plan.overrides = recipe.overrides;
  plan.recipe = ResolvedKeys(recipe);

  // Beside what the recipe sets, what follows from it.
  PlanKeys keys = KeysOf(recipe);
  const ModelSizes sizes = ResolveModel(recipe);
  keys.model.kv_heads = sizes.kv_heads;
  keys.model.head_dim = sizes.head_dim;
  const BatchSizes batch = ResolveBatch(recipe);
  keys.batch.global = batch.global;
  keys.batch.micro = batch.micro;
  keys.batch.accumulate = batch.accumulate;
  keys.run.comm = OneOf(ResolveComm(recipe));
  keys.start.run_id = RunIdOf(recipe);

  // The parts that depend on folders.
  plan.data = DataOf(recipe);
  if (plan.data.packs() && plan.data.has_eval_files()) {
    // Faults of their documents are found when the files are judged.
    const auto rows = CountEvalRows(plan.data);
    plan.data.eval_file_samples = rows ? *rows : 0;
  }
  plan.heads = HeadsOf(recipe);
  plan.run.run_dir = RunDirOf(recipe);
  plan.run.checkpoint_dir = recipe.checkpoint.dir.is_set ? ResolvedPath(recipe, *recipe.checkpoint.dir) : "";
  PutKeys(keys, plan);
}

}  // namespace shardc
