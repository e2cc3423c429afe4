// shardc init RECIPE -o DIR: the checkpoint of step 0, made by shardc-run without a step, for runs that begin from it
// on any mesh.

#include <memory>

#include "compiler/base/absolute_path.h"
#include "compiler/checkpoint/what_lies_there.h"
#include "compiler/driver/absolute_paths.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/driver/runtime_program.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

struct InitOptions {
  RecipeOptions recipe;
  std::string directory;
};

}  // namespace

static auto Init(const InitOptions& options) -> Status {
  const std::string directory = AbsolutePath(options.directory);
  if (const std::string newest = NewestBelow(directory); !newest.empty()) {
    return Fail(ExitCode::Usage, "-o {}: it has a checkpoint, {}; name another folder", options.directory, newest);
  }
  const NamedText named = ReadRecipeOrPlan(options.recipe.path);
  FAIL_IF(named.is_plan, ExitCode::Usage, "{} is a plan; name its recipe", options.recipe.path);
  RecipeSource source(options.recipe, named.text);
  source.TakeHostsOfLaunch();
  ASSIGN_OR_RETURN(auto plan, source.Printed(source.LoadAndCompile({})));
  MakePathsAbsolute(plan);
  plan.run.checkpoint_dir = directory;
  // The checkpoint is all that stays.
  ASSIGN_OR_RETURN(const auto path, TextInMemory(PrintPlan(plan)));
  return BecomeRuntime({path, "--init"}, plan.device);
}

auto DeclareInit(CommandOptions& options) -> Action {
  const auto values = std::make_shared<InitOptions>();
  DeclareRecipeOptions(options, values->recipe, "RECIPE", "a recipe (TOML)");
  options.Text("-o,--output", values->directory, "DIR", "the folder for the checkpoint step-00000000", true);
  return [values] {
    const Status done = Init(*values);
    return ExitCodeOf(done ? done : Status(TellLaunchOf(done.error())));
  };
}

}  // namespace shardc
