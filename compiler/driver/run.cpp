// shardc run RECIPE|PLAN: makes the plan where a recipe is given, and becomes shardc-run, which lies beside shardc.

#include <csignal>
#include <filesystem>
#include <memory>

#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/driver/runtime_program.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

struct RunOptions {
  RecipeOptions recipe;
  std::string run_dir;
};

}  // namespace

/// Paths of a recipe hold from where `shardc` was called; those of the plan on record hold from anywhere.
static auto MakePathsAbsolute(Plan& plan) -> void {
  const auto make_absolute = [](std::string& path) {
    path = path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
  };
  for (TokenSource& source : plan.data.sources) {
    for (std::string& file : source.files) {
      make_absolute(file);
    }
  }
  for (TargetHead& head : plan.heads) {
    for (std::string& file : head.files) {
      make_absolute(file);
    }
  }
  make_absolute(plan.seed.path);
  make_absolute(plan.run.run_dir);
  make_absolute(plan.run.checkpoint_dir);
}

static auto Run(const RunOptions& options) -> Status {
  // It stays ignored in shardc-run: a reader of the messages that went away ends no run.
  std::signal(SIGPIPE, SIG_IGN);
  const NamedText named = ReadRecipeOrPlan(options.recipe.path);
  const auto& text = named.text;
  if (named.is_plan) {
    RETURN_IF_ERROR(RefuseRecipeOptions(options.recipe.path, {SetOption(options.recipe)}));
    const auto path = PathForRuntime(options.recipe.path, *text);
    if (!path) {
      return path.error();
    }
    std::vector<std::string> arguments{*path, "--asked=" + options.recipe.path};
    if (!options.run_dir.empty()) {
      arguments.insert(arguments.end(), {"--run-dir", options.run_dir});
    }
    return BecomeRuntime(arguments);
  }

  RecipeSource source(options.recipe, text);
  auto plan = source.LoadAndCompile({.run_dir = options.run_dir});
  source.PrintDiagnostics();
  if (!plan) {
    return plan.error();
  }
  MakePathsAbsolute(*plan);
  const std::string run_dir = options.run_dir.empty() ? plan->run.run_dir : options.run_dir;
  // Not as a file in the run directory, which may be another launch's: shardc-run puts it there once the directory is
  // its.
  const std::string plan_text = PrintPlan(*plan);
  if (plan_text.size() > MaxPlanBytes) {
    return Fail(
        ExitCode::RecipeRejected,
        "the plan of {} has {} bytes of text; a plan that runs has {} at most\nfewer `layers` in [model], or `chunks` "
        "or heads in [loss], make it shorter",
        options.recipe.path, plan_text.size(), MaxPlanBytes);
  }
  const auto path = TextInMemory(plan_text);
  if (!path) {
    return path.error();
  }
  const auto recipe = TextInMemory(text ? *text : std::string());
  if (!recipe) {
    return recipe.error();
  }
  return BecomeRuntime({*path, "--run-dir", run_dir, "--asked=" + options.recipe.path, "--asked-text", *recipe});
}

auto DeclareRun(CommandOptions& options) -> Action {
  const auto values = std::make_shared<RunOptions>();
  DeclareRecipeOptions(options, values->recipe);
  options.Text("--run-dir", values->run_dir, "DIR",
               "directory of metrics and checkpoints; default: runs/<run id> beside the recipe");
  return [values] { return ExitCodeOf(Run(*values)); };
}

}  // namespace shardc
