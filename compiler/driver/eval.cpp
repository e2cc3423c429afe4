// shardc eval RECIPE|PLAN|RUN --checkpoint DIR: the loss of a checkpoint on the held-out tokens, by shardc-run.

#include <memory>

#include "compiler/base/timeout.h"
#include "compiler/checkpoint/seed_contents.h"
#include "compiler/driver/checkpoint_path.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/driver/runtime_program.h"
#include "compiler/plan/text.h"
#include "compiler/verify/read_plan.h"

namespace shardc {

namespace {

struct EvalOptions {
  RecipeOptions recipe;
  std::string checkpoint;
  std::string format = "text";
};

}  // namespace

static auto BecomeEvaluation(const std::string& plan_path, Device device, const std::string& checkpoint,
                             const EvalOptions& options) -> Status {
  // Each rank would find the same.
  RETURN_IF_ERROR(ManifestAt(checkpoint));
  return BecomeRuntime({plan_path, "--eval", checkpoint, "--format", options.format}, device);
}

static auto Eval(EvalOptions options) -> Status {
  RETURN_IF_ERROR(TakeRecipeOfRun(options.recipe, options.checkpoint));
  options.checkpoint = CheckpointAt(options.checkpoint);
  const NamedText named = ReadRecipeOrPlan(options.recipe.path);
  if (named.is_plan) {
    RETURN_IF_ERROR(RefuseRecipeOptions(options.recipe.path, {SetOption(options.recipe)}));
    FAIL_IF(options.checkpoint.empty(), ExitCode::Usage, "{} is a plan; name the checkpoint by --checkpoint",
            options.recipe.path);
    const auto path = PathForRuntime(options.recipe.path, *named.text);
    return path ? BecomeEvaluation(*path, DeviceOfPlanText(*named.text), options.checkpoint, options) : path.error();
  }
  RecipeSource source(options.recipe, named.text);
  source.TakeHostsOfLaunch();
  ASSIGN_OR_RETURN(const auto plan,
                   source.Printed(source.LoadAndCompile({.run_dir = RunDirOfCheckpoint(options.checkpoint)})));
  FAIL_IF(plan.data.eval_tokens == 0 && !plan.data.has_eval_files(), ExitCode::RecipeRejected,
          "{} holds out no tokens (`eval_tokens` in [data] is 0), so there is nothing to evaluate\n"
          "use --set 'data.eval=[\"FILE\"]' with a file that the run did not train on",
          options.recipe.path);
  ASSIGN_OR_RETURN(const auto checkpoint, CheckpointOrNewest(options.checkpoint, plan));
  // Nothing of an evaluation stays on disk, its plan included.
  ASSIGN_OR_RETURN(const auto path, TextInMemory(PrintPlan(plan)));
  return BecomeEvaluation(path, plan.device, checkpoint, options);
}

auto DeclareEval(CommandOptions& options) -> Action {
  const auto values = std::make_shared<EvalOptions>();
  DeclareRecipeOptions(options, values->recipe, "RECIPE|PLAN|RUN",
                       "a recipe (TOML), a plan file, or a run directory, for its newest recipe");
  options.Text("--checkpoint", values->checkpoint, "DIR",
               "the checkpoint to evaluate, or a run directory; default: the newest of the recipe's run");
  options.Choice("--format", values->format, {"text", "json"}, "format of the result");
  return [values] {
    const Status done = Eval(*values);
    return ExitCodeOf(done ? done : Status(TellLaunchOf(done.error())));
  };
}

}  // namespace shardc
