// shardc eval RECIPE|PLAN --checkpoint DIR: the loss of a checkpoint on the held-out tokens, by shardc-run.

#include <filesystem>
#include <memory>

#include "compiler/checkpoint/manifest.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/driver/runtime_program.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

struct EvalOptions {
  RecipeOptions recipe;
  std::string checkpoint;
  std::string format = "text";
};

}  // namespace

/// The run directory that a checkpoint lies in, where it lies in one that has a record of its seed; else empty.
static auto RunDirOfCheckpoint(const std::string& checkpoint) -> std::string {
  std::error_code unknown;
  const auto folder = std::filesystem::weakly_canonical(checkpoint, unknown).parent_path().parent_path();
  return !unknown && std::filesystem::exists(folder / SeedRecordName, unknown) ? folder.string() : "";
}

static auto Eval(const EvalOptions& options) -> Status {
  const NamedText named = ReadRecipeOrPlan(options.recipe.path);
  if (named.is_plan) {
    RETURN_IF_ERROR(RefuseRecipeOptions(options.recipe.path, {SetOption(options.recipe)}));
    const auto path = PathForRuntime(options.recipe.path, *named.text);
    return path ? BecomeRuntime({*path, "--eval", options.checkpoint, "--format", options.format}) : path.error();
  }
  RecipeSource source(options.recipe, named.text);
  const auto plan = source.LoadAndCompile({.run_dir = RunDirOfCheckpoint(options.checkpoint)});
  source.PrintDiagnostics();
  if (!plan) {
    return plan.error();
  }
  if (plan->data.eval_tokens == 0) {
    return Fail(ExitCode::RecipeRejected,
                "{} holds out no tokens (`eval_tokens` in [data] is 0), so there is nothing to evaluate\n"
                "use --set data.eval_tokens=N",
                options.recipe.path);
  }
  // Nothing of an evaluation stays on disk, its plan included.
  const auto path = TextInMemory(PrintPlan(*plan));
  if (!path) {
    return path.error();
  }
  return BecomeRuntime({*path, "--eval", options.checkpoint, "--format", options.format});
}

auto DeclareEval(CommandOptions& options) -> Action {
  const auto values = std::make_shared<EvalOptions>();
  DeclareRecipeOptions(options, values->recipe);
  options.Text("--checkpoint", values->checkpoint, "DIR", "the checkpoint to evaluate", true);
  options.Choice("--format", values->format, {"text", "json"}, "format of the result");
  return [values] { return ExitCodeOf(Eval(*values)); };
}

}  // namespace shardc
