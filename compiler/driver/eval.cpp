// shardc eval RECIPE|PLAN --checkpoint DIR: the loss of a checkpoint on the held-out tokens, by shardc-run.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "compiler/base/files.h"
#include "compiler/base/timeout.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/cluster/guard.h"
#include "compiler/cluster/place.h"
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

/// The run directory that a checkpoint lies in, where it lies in one that has a record of its seed; else empty.
static auto RunDirOfCheckpoint(const std::string& checkpoint) -> std::string {
  std::error_code unknown;
  const auto folder = std::filesystem::weakly_canonical(checkpoint, unknown).parent_path().parent_path();
  return !unknown && std::filesystem::exists(folder / SeedRecordName, unknown) ? folder.string() : "";
}

/// The newest checkpoint below a directory that is a run's, or that of its checkpoints; empty if it is neither.
static auto NewestBelow(const std::string& path) -> std::string {
  std::error_code unknown;
  const std::filesystem::path folder(path);
  std::string newest;
  for (const auto& parent : {folder, folder / "checkpoints"}) {
    for (const auto& entry : std::filesystem::directory_iterator(parent, unknown)) {
      const std::string name = entry.path().filename().string();
      // Numbers have leading zeros.
      if (name.starts_with("step-") && std::filesystem::exists(entry.path() / ManifestName, unknown)) {
        newest = std::max(newest, entry.path().string());
      }
    }
  }
  return newest;
}

/// Why `--checkpoint` names none, if that is plain at a glance.
static auto RefuseOtherFolders(const std::string& checkpoint) -> Status {
  std::error_code unknown;
  if (!std::filesystem::is_directory(checkpoint, unknown) ||
      std::filesystem::exists(std::filesystem::path(checkpoint) / ManifestName, unknown)) {
    return Success{};
  }
  const std::string newest = NewestBelow(checkpoint);
  return newest.empty() ? Status(Success{})
                        : Fail(ExitCode::Usage, "--checkpoint {} is no checkpoint but a folder of them; its newest: {}",
                               checkpoint, newest);
}

/// Told here, before ranks start, each of which would find the same.
static auto CheckManifest(const std::string& checkpoint) -> Status {
  const auto refused = [&](const Error& error) {
    return Fail(ExitCode::Checkpoint, "--checkpoint {} is no checkpoint: {}: {}", checkpoint, ManifestName,
                error.message);
  };
  const auto path = std::filesystem::path(checkpoint) / ManifestName;
  const auto text = ReadFile(path.string(), MaxManifestBytes);
  if (!text) {
    std::error_code unknown;
    const auto type = std::filesystem::status(path, unknown).type();
    const bool is_another =
        type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::directory;
    return is_another ? refused(text.error())
                      : Fail(ExitCode::Environment, "{} cannot be read: {}", path.string(), text.error().message);
  }
  const auto manifest = ManifestFromText(*text);
  return manifest ? Status(Success{}) : refused(manifest.error());
}

static auto BecomeEvaluation(const std::string& plan_path, Device device, const EvalOptions& options) -> Status {
  RETURN_IF_ERROR(CheckManifest(options.checkpoint));
  return BecomeRuntime({plan_path, "--eval", options.checkpoint, "--format", options.format}, device);
}

static auto Eval(const EvalOptions& options) -> Status {
  StartGuard(std::getenv, DefaultTimeout);
  RETURN_IF_ERROR(RefuseOtherFolders(options.checkpoint));
  const NamedText named = ReadRecipeOrPlan(options.recipe.path);
  if (named.is_plan) {
    RETURN_IF_ERROR(RefuseRecipeOptions(options.recipe.path, {SetOption(options.recipe)}));
    const auto path = PathForRuntime(options.recipe.path, *named.text);
    return path ? BecomeEvaluation(*path, DeviceOfPlanText(*named.text), options) : path.error();
  }
  RecipeSource source(options.recipe, named.text);
  if (const auto place = FindPlace(std::getenv); place && *place) {
    source.set_num_hosts((*place)->num_hosts());
  }
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
  return BecomeEvaluation(*path, plan->device, options);
}

auto DeclareEval(CommandOptions& options) -> Action {
  const auto values = std::make_shared<EvalOptions>();
  DeclareRecipeOptions(options, values->recipe);
  options.Text("--checkpoint", values->checkpoint, "DIR", "the checkpoint to evaluate", true);
  options.Choice("--format", values->format, {"text", "json"}, "format of the result");
  return [values] {
    const Status done = Eval(*values);
    return ExitCodeOf(done ? done : Status(TellLaunchOf(done.error())));
  };
}

}  // namespace shardc
