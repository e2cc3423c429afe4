// shardc run RECIPE|PLAN: makes the plan where a recipe is given, and becomes shardc-run, which lies beside shardc.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "compiler/base/step_range.h"
#include "compiler/cluster/place.h"
#include "compiler/driver/absolute_paths.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/driver/runtime_program.h"
#include "compiler/explain/text_parts.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

struct RunOptions {
  RecipeOptions recipe;
  std::string run_dir;
  /// As it was given; empty: it was not.
  std::string timeout;
  std::string trace;
  std::string trace_steps;
};

}  // namespace

/// The hosts of the launch, as if by --set. Errors: the recipe is for another number of hosts, or has fewer ranks.
static auto SetHosts(RecipeOptions& options, const Recipe& recipe, const LaunchPlace& place) -> Status {
  const Located<int64_t>& hosts = recipe.mesh.hosts;
  if (hosts.is_set && *hosts != place.num_hosts()) {
    return Fail(ExitCode::Environment,
                "mesh.hosts is {}, and {} started processes on {}; leave mesh.hosts out, or launch on {}", *hosts,
                place.launcher, place.num_hosts(), Counted(*hosts, "host"));
  }
  const int64_t ranks = *recipe.mesh.replicate * *recipe.mesh.dp * *recipe.mesh.tp;
  if (ranks % place.num_hosts() != 0) {
    return Fail(
        ExitCode::Environment,
        "{} started {} processes on {}, and the mesh has {}; start one process for each rank, or one for each host",
        place.launcher, place.num_processes, Counted(place.num_hosts(), "host"), Counted(ranks, "rank"));
  }
  if (!hosts.is_set && place.num_hosts() > 1) {
    options.sets.push_back(fmt::format("mesh.hosts={}", place.num_hosts()));
  }
  return Success{};
}

/// The plan of a recipe, whose diagnostics are printed; in a launch by another launcher, by its process 0 alone.
static auto CompileRecipe(const RunOptions& asked, const std::optional<std::string>& text,
                          const std::optional<LaunchPlace>& place) -> ErrorOr<Plan> {
  RunOptions options = asked;
  const bool prints = !place || place->process == 0;
  if (place) {
    RecipeSource source(options.recipe, text);
    const auto recipe = source.Load();
    if (!recipe && prints) {
      source.PrintDiagnostics();
    }
    const Status set = recipe ? SetHosts(options.recipe, *recipe, *place) : Status(recipe.error());
    RETURN_IF_ERROR(set);
  }
  RecipeSource source(options.recipe, text);
  auto plan = source.LoadAndCompile({.run_dir = options.run_dir});
  if (prints) {
    source.PrintDiagnostics();
  }
  return plan;
}

/// shardc-run with what was asked of this launch besides.
static auto Launch(const RunOptions& options, std::vector<std::string> arguments) -> Error {
  if (!options.timeout.empty()) {
    arguments.push_back("--timeout=" + options.timeout);
  }
  return BecomeRuntime(arguments);
}

/// In a launch over several processes the others wait for this one, and learn from shardc-run that it will not start.
static auto Refuse(const RunOptions& options, const Error& error) -> Error {
  std::vector<std::string> arguments{"-", fmt::format("--refused={}", static_cast<int>(error.code)),
                                     "--asked=" + options.recipe.path};
  if (!error.message.empty()) {
    arguments.push_back("--refused-why=" + error.message);
  }
  return Launch(options, arguments);
}

/// From now on shardc-run, which the signals wait for, decides what becomes of those that ask for a stop. (A mask and
/// what waits for it outlive an exec.)
static auto HoldStopSignals() -> void {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT, SIGHUP}) {
    sigaddset(&set, signal);
  }
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

/// The options of a trace, for shardc-run. Errors: steps that are no range, a folder that does not exist.
static auto TraceArguments(const RunOptions& options) -> ErrorOr<std::vector<std::string>> {
  if (options.trace.empty()) {
    return options.trace_steps.empty()
               ? ErrorOr<std::vector<std::string>>(std::vector<std::string>())
               : Fail(ExitCode::Usage, "--trace-steps says which steps --trace writes, and there is no --trace FILE");
  }
  const std::string steps = options.trace_steps.empty() ? std::string(DefaultTraceSteps) : options.trace_steps;
  if (!ParseStepRange(steps)) {
    return Fail(ExitCode::Usage, "--trace-steps is `{}`; expected steps from 1 on, such as 5..8", steps);
  }
  const std::filesystem::path folder = std::filesystem::absolute(options.trace).parent_path();
  if (std::error_code unknown; !std::filesystem::is_directory(folder, unknown)) {
    return Fail(ExitCode::Environment, "--trace {}: the folder {} does not exist", options.trace, folder.string());
  }
  return std::vector<std::string>{"--trace=" + options.trace, "--trace-steps=" + steps};
}

/// What shardc-run is called with for a plan file.
static auto ArgumentsOfPlan(const RunOptions& options, const std::string& text) -> ErrorOr<std::vector<std::string>> {
  RETURN_IF_ERROR(RefuseRecipeOptions(options.recipe.path, {SetOption(options.recipe)}));
  const auto path = PathForRuntime(options.recipe.path, text);
  if (!path) {
    return path.error();
  }
  std::vector<std::string> arguments{*path, "--asked=" + options.recipe.path};
  if (!options.run_dir.empty()) {
    arguments.insert(arguments.end(), {"--run-dir", options.run_dir});
  }
  return arguments;
}

/// What shardc-run is called with for a recipe, which is compiled.
static auto ArgumentsOfRecipe(const RunOptions& options, const std::optional<std::string>& text,
                              const std::optional<LaunchPlace>& place) -> ErrorOr<std::vector<std::string>> {
  auto plan = CompileRecipe(options, text, place);
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
  return std::vector<std::string>{*path,          "--run-dir", run_dir, "--asked=" + options.recipe.path,
                                  "--asked-text", *recipe};
}

static auto ArgumentsOf(const RunOptions& options, const std::optional<LaunchPlace>& place)
    -> ErrorOr<std::vector<std::string>> {
  const auto trace = TraceArguments(options);
  if (!trace) {
    return trace.error();
  }
  const NamedText named = ReadRecipeOrPlan(options.recipe.path);
  auto arguments =
      named.is_plan ? ArgumentsOfPlan(options, *named.text) : ArgumentsOfRecipe(options, named.text, place);
  if (arguments) {
    arguments->insert(arguments->end(), trace->begin(), trace->end());
  }
  return arguments;
}

static auto Run(const RunOptions& options) -> Status {
  // It stays ignored in shardc-run: a reader of the messages that went away ends no run.
  std::signal(SIGPIPE, SIG_IGN);
  const auto place = FindPlace(std::getenv);
  if (!place) {
    return Refuse(options, place.error());
  }
  if (*place) {
    HoldStopSignals();
  }
  const auto arguments = ArgumentsOf(options, *place);
  if (arguments) {
    return Launch(options, *arguments);
  }
  const bool is_awaited = *place && (*place)->num_processes > 1;
  return is_awaited ? Refuse(options, arguments.error()) : arguments.error();
}

auto DeclareRun(CommandOptions& options) -> Action {
  const auto values = std::make_shared<RunOptions>();
  DeclareRecipeOptions(options, values->recipe);
  options.Text("--run-dir", values->run_dir, "DIR",
               "directory of metrics and checkpoints; default: runs/<run id> beside the recipe");
  options.Text("--timeout", values->timeout, "SECONDS", "how long a rank waits for the other ranks; default: 600");
  options.Text("--trace", values->trace, "FILE",
               "write what the ops of some steps took, in the trace format of Chrome and Perfetto");
  options.Text("--trace-steps", values->trace_steps, "A..B", "which steps, both included; default: 5..8");
  return [values] { return ExitCodeOf(Run(*values)); };
}

}  // namespace shardc
