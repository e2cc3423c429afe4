#include "runtime/launch/command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "compiler/base/exit_code_text.h"
#include "compiler/base/files.h"
#include "compiler/base/printable.h"
#include "compiler/base/process_stat.h"
#include "compiler/base/run_options.h"
#include "compiler/base/standard_streams.h"
#include "compiler/cluster/launcher_end.h"
#include "compiler/cluster/place.h"
#include "compiler/data/replaced_input.h"
#include "compiler/plan/text.h"
#include "compiler/verify/read_plan.h"
#include "runtime/core/runner.h"
#include "runtime/kernels/torch_version.h"
#include "runtime/launch/doctor.h"
#include "runtime/launch/job_end.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/meet_and_run.h"
#include "runtime/launch/stop_signals.h"

namespace shardc {

/// Closes a text that `shardc run` left in memory: it takes memory for as long as any process has it open.
static auto CloseTextInMemory(std::string_view path) -> void {
  constexpr std::string_view Open = "/proc/self/fd/";
  int descriptor = -1;
  if (path.starts_with(Open)) {
    std::from_chars(path.data() + Open.size(), path.data() + path.size(), descriptor);
  }
  if (descriptor > STDERR_FILENO) {
    close(descriptor);
  }
}

/// A file of more ids is not read.
static constexpr size_t MaxIdsBytes = size_t{1} << 30;

static auto ReadPlan(const std::string& path) -> ErrorOr<Plan> {
  // One byte more than a plan may have, and not what /dev/zero holds.
  const auto text = ReadFile(path, MaxPlanBytes + 1);
  FAIL_IF(!text, text.error().code, "cannot read the plan {}: {}", path, text.error().message);
  CloseTextInMemory(path);
  auto plan = ReadRunnablePlan(path, *text);
  if (plan) {
    RETURN_IF_ERROR(CheckAssumesNothing(path, *plan));
  }
  return plan;
}

/// Checks that the trace replaces nothing that the run reads or keeps.
static auto CheckTrace(const Plan& plan, const LaunchOptions& options) -> Status {
  if (options.trace.empty()) {
    return Success{};
  }
  RETURN_IF_ERROR(CheckHasOffsets("--trace", options.trace));
  std::vector<std::string> inputs = InputsOf(plan.data, plan.heads, {plan.seed.path, plan.seed.adapter_path});
  inputs.insert(inputs.end(), {options.request.path, plan.run.checkpoint_dir, options.eval_checkpoint,
                               options.tune.file, options.run_dir.empty() ? plan.run.run_dir : options.run_dir});
  return CheckReplacesNone("--trace", options.trace, inputs);
}

/// Checks that what only GPUs have is asked of a plan for GPUs.
static auto CheckForGpu(const Plan& plan, const LaunchOptions& options) -> Status {
  const std::string_view option = options.tune.is_set() ? "--tune" : options.graphs ? "--graphs" : "";
  return option.empty() || FactsOf(plan.device).family == DeviceFamily::Cuda
             ? Status(Success{})
             : Fail(ExitCode::Usage, "{} is for runs on GPUs, and run.device is \"{}\"; leave it out", option,
                    ToText(plan.device));
}

/// Runs a plan. `recipe_path`: the file with the text of the recipe that the plan was made from, for the record.
static auto Run(const std::string& plan_path, const std::string& recipe_path, LaunchOptions options)
    -> ErrorOr<ExitCode> {
  const auto place = FindPlace(std::getenv);
  if (!place) {
    return RefuseLaunch(place.error());
  }
  auto plan = options.refused ? ErrorOr<Plan>(*options.refused) : ReadPlan(plan_path);
  if (options.request.path.empty()) {
    options.request.path = plan_path;
  }
  if (const Status traced = plan ? CheckTrace(*plan, options) : Status(Success{}); !traced) {
    plan = traced.error();
  }
  if (const Status fits = plan ? CheckForGpu(*plan, options) : Status(Success{}); !fits) {
    plan = fits.error();
  }
  if (const Status device = plan ? ResolveDevice(*plan) : Status(Success{}); !device) {
    plan = device.error();
  }
  if (!plan) {
    return *place ? MeetAndRun(**place, plan, options) : plan.error();
  }
  if (options.run_dir.empty()) {
    options.run_dir = plan->run.run_dir;
  }
  if (!recipe_path.empty()) {
    auto text = ReadFile(recipe_path, MaxPlanBytes);
    FAIL_IF(!text, text.error().code, "cannot read the recipe {}: {}", recipe_path, text.error().message);
    CloseTextInMemory(recipe_path);
    options.request.recipe = *std::move(text);
  }
  options.request.torch_version = TorchVersion();
  if (!*place || (*place)->process == 0) {
    ASSIGN_OR_RETURN(options.end_time, EndOfJob(std::getenv));
  }
  if (*place) {
    return MeetAndRun(**place, plan, options);
  }
  HoldSignals();
  return plan->run.comm == Comm::Shm ? LaunchLocal(*plan, options, RunRank)
                                     : LaunchPlayedHosts(*plan, options, RunRank);
}

static auto ReadIds(const std::string& path, std::vector<int32_t>& ids) -> Status {
  const auto bytes = ReadFile(path, MaxIdsBytes + 1);
  FAIL_IF(!bytes || bytes->size() > MaxIdsBytes || bytes->size() % sizeof(int32_t) != 0, ExitCode::Usage,
          "cannot read ids from {}: {}", path,
          bytes ? fmt::format("it has {} bytes", bytes->size()) : bytes.error().message);
  CloseTextInMemory(path);
  ids.resize(bytes->size() / sizeof(int32_t));
  std::memcpy(ids.data(), bytes->data(), bytes->size());
  return Success{};
}

static auto Examine(const LaunchOptions& options) -> ErrorOr<ExitCode> {
  const auto place = FindPlace(std::getenv);
  if (!place) {
    return RefuseLaunch(place.error());
  }
  DoctorOptions doctor;
  doctor.run_dir = options.run_dir;
  if (*place) {
    const auto address = OwnAddress(**place);
    if (!address) {
      return RefuseLaunch(address.error());
    }
    doctor.own_address = *address;
  }
  doctor.torch_version = TorchVersion();
  doctor.timeout = options.timeout;
  doctor.json = options.json;
  return RunDoctor(*place, doctor);
}

/// Declares the options that `shardc run` has too.
static auto DeclareRunOptions(CLI::App& app, RunOptionTexts& texts) -> void {
  for (const RunOptionRow& row : RunOptionRows) {
    RunOptionText& text = texts[row.option];
    const std::string flag(row.flag);
    const std::string help(row.help);
    switch (row.takes) {
      case TakesValue::Never: app.add_flag(flag, text.is_flagged, help); break;
      case TakesValue::Always:
        app.add_option(flag, text.value, help)->type_name(std::string(row.metavar))->check(row.fault);
        break;
      case TakesValue::Maybe: app.add_flag(flag, text.value, help); break;
    }
  }
}

/// Takes the values of the options that are given.
static auto TakeRunOptions(const RunOptionTexts& texts, LaunchOptions& options) -> void {
#define RUN_OPTION(Name, name, flag, Type, initial, help)                    \
  if (const RunOptionText& name = texts[RunOption::Name]; name.is_given()) { \
    options.name = Type##Option::Read(name.value);                           \
  }
#include "schemas/run_options.def"
}

static const std::terminate_handler TerminateOtherwise = std::get_terminate();

/// Ends the process with an error if it ends because std::thread found no thread. Any thread of a library may let that
/// exception through.
[[noreturn]] static auto EndForWantOfThreads() -> void {
  try {
    if (const auto thrown = std::current_exception()) {
      std::rethrow_exception(thrown);
    }
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      std::cerr << "error: the system gives this process no more threads; raise the limit of processes (ulimit -u, a "
                   "control group's pids.max)"
                << std::endl;
      _exit(static_cast<int>(ExitCode::Environment));
    }
  } catch (...) {
  }
  TerminateOtherwise();
  std::abort();
}

auto RunCommand(int argc, char** argv) -> int {
  OpenStandardStreams();
  std::set_terminate(EndForWantOfThreads);
  // If the reader of the log goes away, a write to the log fails, and the run continues.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::string plan_path;
  std::string recipe_path;
  std::string format = "text";
  LaunchOptions options;
  CLI::App app{
      "Runs a plan on the ranks of this host.\n\n"
      "  shardc-run quickstart.plan\n"
      "  shardc-run quickstart.plan --eval runs/quickstart/checkpoints/step-00000400"};
  app.name("shardc-run");
  app.footer(ExitCodeTable());
  app.add_option("plan", plan_path, "a plan that `shardc plan -o` wrote")->required();
  RunOptionTexts texts;
  DeclareRunOptions(app, texts);
  CLI::Option* const eval_option =
      app.add_option("--eval", options.eval_checkpoint, "evaluate this checkpoint instead of training");
  app.add_flag("--init", options.init, "save the initial state, and take no step")->excludes(eval_option);
  app.add_option("--format", format, "format of the result: text or json")->check(CLI::IsMember({"text", "json"}));
  eval_option->excludes(app.get_option("--tune"));
  eval_option->excludes(app.get_option("--stop-after"));
  app.add_flag("--dry", options.dry, "bind every op, but run none");
  // From `shardc run`.
  constexpr const char* Hidden = "";
  app.add_option("--asked", options.request.path, "For the record: the recipe or plan that the user named")
      ->group(Hidden);
  app.add_option("--asked-text", recipe_path, "For the record: a file with the text of that recipe")->group(Hidden);
  bool examines = false;
  std::string ids_path;
  GenerateRequest generate;
  app.add_option("--ids", ids_path, "A file of ids, 4 bytes each, for the checkpoint of --eval")->group(Hidden);
  app.add_option("--logits", generate.logits, "Write the logits of the ids to this file")->group(Hidden);
  app.add_option("--sample", generate.num_sampled, "Sample so many ids after them")->group(Hidden);
  app.add_option("--temperature", generate.temperature, "What logits are divided by")->group(Hidden);
  app.add_option("--sample-seed", generate.seed, "Of the draws")->group(Hidden);
  app.add_flag("--bytes", generate.are_bytes, "The ids are bytes of text")->group(Hidden);
  app.add_flag("--doctor", examines, "Look at the hosts of the launch, and run nothing")->group(Hidden);
  int refused = 0;
  std::string refused_why;
  app.add_option("--refused", refused, "The recipe has no plan, by this exit code")->group(Hidden);
  app.add_option("--refused-why", refused_why, "Why")->group(Hidden);
  app.add_flag("--refused-is-told", options.refused_is_told, "Process 0 has told it")->group(Hidden);
  app.add_flag("--refused-by-all", options.refused_by_all, "Every process refuses")->group(Hidden);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream help;
    std::ostringstream message;
    const int code = app.exit(error, help, message);
    std::cout << help.str() << std::flush;
    std::cerr << Printable(message.str());
    return code != 0 ? static_cast<int>(ExitCode::Usage) : std::cout ? 0 : static_cast<int>(ExitCode::Environment);
  }
  options.begun = StartOfThisProcess();
  options.json = format == "json";
  TakeRunOptions(texts, options);
  if (refused != 0) {
    options.refused = Error{static_cast<ExitCode>(refused), refused_why};
  }
  EndWithLauncher(std::getenv);
  if (!ids_path.empty()) {
    options.generate = std::move(generate);
    if (const Status read = ReadIds(ids_path, options.generate->ids); !read) {
      std::cerr << "error: " << Printable(read.error().message) << "\n";
      return static_cast<int>(read.error().code);
    }
  }
  const auto result = examines ? Examine(options) : Run(plan_path, recipe_path, options);
  if (!result) {
    std::cerr << "error: " << Printable(result.error().message) << "\n";
    return static_cast<int>(result.error().code);
  }
  return static_cast<int>(*result);
}

}  // namespace shardc
