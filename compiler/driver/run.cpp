// shardc run RECIPE|PLAN: makes the plan where a recipe is given, and becomes shardc-run, which lies beside shardc.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "compiler/base/files.h"
#include "compiler/base/run_options.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/cluster/place.h"
#include "compiler/driver/absolute_paths.h"
#include "compiler/driver/output.h"
#include "compiler/driver/plan_text.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/driver/runtime_program.h"
#include "compiler/plan/text.h"
#include "compiler/verify/read_plan.h"

namespace shardc {

namespace {

struct RunOptions {
  RecipeOptions recipe;
  RunOptionTexts launch;

  auto run_dir() const -> const std::string& { return launch[RunOption::RunDir].value; }
};

/// How the runtime is called, for a plan for `device`.
struct RuntimeCall {
  std::vector<std::string> arguments;
  Device device = Device::Cpu;
};

}  // namespace

/// Do other processes wait for this one?
static auto IsAwaited(const std::optional<LaunchPlace>& place) -> bool { return place && place->num_processes > 1; }

/// Checks that the launch has the hosts of the recipe. Errors: FoundByAll, if the recipe is for another number of hosts
/// than the launch has, or its ranks do not lie on so many.
static auto CheckHosts(const Mesh& mesh, const LaunchPlace& place) -> Status {
  const int64_t num_ranks = mesh.num_ranks();
  FAIL_IF(mesh.hosts == 1 && num_ranks % place.num_hosts() != 0, ExitCode::Environment, ErrorKind::FoundByAll,
          "{} started processes on {}, and the mesh has {}, so that hosts cannot have equally many; launch on a "
          "number of hosts that divides {}, or change [mesh]",
          place.launcher, Counted(place.num_hosts(), "host"), Counted(num_ranks, "rank"), num_ranks);
  FAIL_IF(mesh.hosts != place.num_hosts(), ExitCode::Environment, ErrorKind::FoundByAll,
          "mesh.hosts is {}, and {} started processes on {}; leave mesh.hosts out, or launch on {}", mesh.hosts,
          place.launcher, Counted(place.num_hosts(), "host"), Counted(mesh.hosts, "host"));
  return Success{};
}

/// Returns the error of a recipe whose diagnostics process 0 has printed. `first`: those that the others learn of.
static auto RecipeIsRefused(ExitCode code, const std::string& first) -> Error {
  return Fail(code, ErrorKind::IsTold, "the recipe is refused\n{}", first);
}

/// Returns the plan of a recipe, whose diagnostics are printed; in a launch by another launcher, by its process 0
/// alone, and the message of the error has the first of them for the others.
static auto CompileRecipe(const RunOptions& options, const std::optional<std::string>& text,
                          const std::optional<LaunchPlace>& place) -> ErrorOr<Plan> {
  RecipeSource source(options.recipe, text);
  if (place) {
    source.set_num_hosts(place->num_hosts());
  }
  auto plan = source.LoadAndCompile({.run_dir = options.run_dir()});
  if (!place || place->process == 0) {
    source.PrintDiagnostics();
  }
  if (const Status fits = plan && place ? CheckHosts(plan->mesh, *place) : Success{}; !fits) {
    return fits.error();
  }
  if (!plan && IsAwaited(place) && plan.error().message.empty()) {
    return RecipeIsRefused(plan.error().code, source.FirstError());
  }
  return plan;
}

/// Becomes shardc-run with what was asked of this launch besides.
static auto Launch(const RunOptions& options, RuntimeCall call) -> Error {
  const std::vector<std::string> asked = options.launch.Arguments();
  call.arguments.insert(call.arguments.end(), asked.begin(), asked.end());
  return BecomeRuntime(call.arguments, call.device);
}

/// In a launch over several processes the others wait for this one. shardc-run tells them that it will not start, and
/// why. If all of them have this error, process 0 prints it, unless it has printed the diagnostics. Returns only if
/// shardc-run cannot be started.
static auto Refuse(const RunOptions& options, const Error& error) -> Error {
  RuntimeCall call{{"-", fmt::format("--refused={}", static_cast<int>(error.code)), "--refused-why=" + error.message}};
  if (error.kind == ErrorKind::IsTold) {
    call.arguments.emplace_back("--refused-is-told");
  }
  if (error.kind == ErrorKind::FoundByAll) {
    call.arguments.emplace_back("--refused-by-all");
  }
  const Error not_started = Launch(options, call);
  return Fail(error.code, "{}\nthe other processes of this launch do not learn of this: {}", error.message,
              not_started.message);
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

/// Checks what the options of a trace say together. Errors: steps of no trace, a folder that does not exist.
static auto CheckTrace(const RunOptionTexts& launch) -> Status {
  const std::string& trace = launch[RunOption::Trace].value;
  if (trace.empty()) {
    return launch[RunOption::TraceSteps].is_given()
               ? Fail(ExitCode::Usage, "--trace-steps says which steps --trace writes, and there is no --trace FILE")
               : Status(Success{});
  }
  const std::filesystem::path folder = std::filesystem::absolute(trace).parent_path();
  if (std::error_code unknown; !std::filesystem::is_directory(folder, unknown)) {
    return Fail(ExitCode::Environment, "--trace {}: the folder {} does not exist", trace, folder.string());
  }
  std::error_code unknown;
  const std::string real = std::filesystem::canonical(folder, unknown).string();
  FAIL_IF(real == "/dev" || real.starts_with("/proc/"), ExitCode::Usage,
          "--trace {}: each rank writes a file beside it; name a file in a folder of disk", trace);
  return Success{};
}

/// What shardc-run is called with for a plan file.
static auto CallForPlan(const RunOptions& options, const std::string& text) -> ErrorOr<RuntimeCall> {
  RETURN_IF_ERROR(RefuseRecipeOptions(options.recipe.path, {SetOption(options.recipe)}));
  ASSIGN_OR_RETURN(const auto path, PathForRuntime(options.recipe.path, text));
  return RuntimeCall{{path, "--asked=" + options.recipe.path}, DeviceOfPlanText(text)};
}

/// Returns what shardc-run is called with for a recipe, which is compiled; its run directory is put among the options.
static auto CallForRecipe(RunOptions& options, const std::optional<std::string>& text,
                          const std::optional<LaunchPlace>& place) -> ErrorOr<RuntimeCall> {
  ASSIGN_OR_RETURN(auto plan, CompileRecipe(options, text, place));
  MakePathsAbsolute(plan);
  if (options.run_dir().empty()) {
    options.launch[RunOption::RunDir].value = plan.run.run_dir;
  }
  // Not as a file in the run directory, which may be another launch's: shardc-run puts it there once the directory is
  // its.
  ASSIGN_OR_RETURN(const auto plan_text, TextForRuntime(plan, options.recipe.path));
  ASSIGN_OR_RETURN(const auto path, TextInMemory(plan_text));
  ASSIGN_OR_RETURN(const auto recipe, TextInMemory(text ? *text : std::string()));
  return RuntimeCall{{path, "--asked=" + options.recipe.path, "--asked-text", recipe}, plan.device};
}

static auto CallFor(RunOptions& options, const std::optional<LaunchPlace>& place) -> ErrorOr<RuntimeCall> {
  RETURN_IF_ERROR(CheckWorkingDirectory());
  RETURN_IF_ERROR(options.launch.Check());
  RETURN_IF_ERROR(CheckTrace(options.launch));
  const NamedText named = ReadRecipeOrPlan(options.recipe.path);
  return named.is_plan ? CallForPlan(options, *named.text) : CallForRecipe(options, named.text, place);
}

static auto Run(RunOptions& options) -> Status {
  // It stays ignored in shardc-run: a reader of the messages that went away ends no run.
  std::signal(SIGPIPE, SIG_IGN);
  const auto place = FindPlace(std::getenv);
  if (!place) {
    return Refuse(options, place.error());
  }
  if (*place) {
    HoldStopSignals();
  }
  const auto call = CallFor(options, *place);
  if (call) {
    return Launch(options, *call);
  }
  return IsAwaited(*place) ? Refuse(options, call.error()) : call.error();
}

auto TellLaunchOf(const Error& error) -> Error {
  const auto place = FindPlace(std::getenv);
  if (!place || !IsAwaited(*place)) {
    return error;
  }
  // An error without a message has diagnostics, which are printed.
  return Refuse({}, error.message.empty() ? RecipeIsRefused(error.code, "") : error);
}

auto DeclareRun(CommandOptions& options) -> Action {
  const auto values = std::make_shared<RunOptions>();
  DeclareRecipeOptions(options, values->recipe);
  for (const RunOptionRow& row : RunOptionRows) {
    RunOptionText& text = values->launch[row.option];
    const std::string flag(row.flag);
    const std::string help(row.help);
    switch (row.takes) {
      case TakesValue::Never: options.Flag(flag, text.is_flagged, help); break;
      case TakesValue::Always: options.Text(flag, text.value, std::string(row.metavar), help); break;
      case TakesValue::Maybe: options.FlagOrText(flag, text.value, help); break;
    }
  }
  return [values] { return ExitCodeOf(Run(*values)); };
}

}  // namespace shardc
