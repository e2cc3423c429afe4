// shardc-run: runs a plan on the ranks of this host.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
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
#include "compiler/base/standard_streams.h"
#include "compiler/base/timeout.h"
#include "compiler/base/version.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/cluster/guard.h"
#include "compiler/cluster/place.h"
#include "compiler/data/replaced_input.h"
#include "compiler/explain/text_parts.h"
#include "compiler/ops/read_plan.h"
#include "compiler/plan/exchange.h"
#include "compiler/plan/text.h"
#include "runtime/core/runner.h"
#include "runtime/data/token_reader.h"
#include "runtime/kernels/torch_version.h"
#include "runtime/launch/doctor.h"
#include "runtime/launch/host_cores.h"
#include "runtime/launch/job_end.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/meeting.h"
#include "runtime/launch/refuse.h"
#include "runtime/launch/stop_signals.h"
#include "runtime/net/address.h"
#include "runtime/net/open_file_limit.h"

namespace shardc {

/// A text that `shardc run` left in memory takes memory for as long as any process has it open.
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

static auto ReadPlan(const std::string& path) -> ErrorOr<Plan> {
  // One byte more than a plan may have, and not what /dev/zero holds.
  const auto text = ReadFile(path, MaxPlanBytes + 1);
  if (!text) {
    return Fail(text.error().code, "cannot read the plan {}: {}", path, text.error().message);
  }
  CloseTextInMemory(path);
  auto plan = ReadRunnablePlan(path, *text);
  if (plan) {
    RETURN_IF_ERROR(CheckAssumesNothing(path, *plan));
  }
  return plan;
}

/// What has to be the same in all processes of a launch.
static auto FactsOf(const Plan& plan, const LaunchOptions& options, const LaunchPlace& place) -> Facts {
  std::string sets;
  for (const std::string& set : plan.overrides) {
    // The launch adds the number of its hosts, which is the same in all processes.
    if (set != fmt::format("mesh.hosts={}", place.num_hosts())) {
      sets += (sets.empty() ? "" : " ") + set;
    }
  }
  const std::optional<std::string>& recipe = options.request.recipe;
  return {{"shardc --version", std::string(ProgramVersion())},
          {"LibTorch", options.request.torch_version},
          {"bytes of the recipe", recipe ? std::to_string(recipe->size()) : "none, but a plan file"},
          {"digest of the recipe", recipe ? DigestOf(*recipe) : ""},
          {"--set", sets},
          {"run.device, by what the machine has", std::string(ToText(plan.device))},
          {"--run-dir", options.run_dir},
          {"--eval", options.eval_checkpoint},
          {"--trace", options.trace.path},
          {"--trace-steps", fmt::format("{}..{}", options.trace.steps.first, options.trace.steps.last)},
          {"--timeout", fmt::format("{:g}", options.timeout.value)}};
}

/// The token files are there on this host, and which tokens they hold.
static auto FingerprintOf(const Plan& plan) -> ErrorOr<std::string> {
  const auto tokens = TokenReader::Open(plan.data, plan.heads, {SamplesPerStep(plan), plan.run.steps});
  if (!tokens) {
    return tokens.error();
  }
  return (*tokens)->Fingerprint();
}

static auto TextOrNothing(const char* variable) -> std::string {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

/// What keeps the plan from running where the launcher has put the processes.
static auto CheckPlace(const Plan& plan, const LaunchPlace& place) -> Status {
  const int64_t ranks = plan.mesh.num_ranks();
  if (place.num_hosts() != plan.mesh.hosts) {
    return Fail(ExitCode::Environment, "the plan is for {}, and {} started processes on {}",
                Counted(plan.mesh.hosts, "host"), place.launcher, place.num_hosts());
  }
  if (MemoryMesh(plan).hosts != plan.mesh.hosts) {
    return Fail(
        ExitCode::Environment,
        "run.comm is \"shm\", by which the ranks of one machine communicate, and {} started processes on {}; leave "
        "run.comm out",
        place.launcher, Counted(place.num_hosts(), "host"));
  }
  if (place.num_processes != ranks && place.local_num_processes != 1) {
    return Fail(
        ExitCode::Environment,
        "{} started {} processes on {}, and the mesh has {}; start one process for each rank, or one for each host",
        place.launcher, place.num_processes, Counted(place.num_hosts(), "host"), Counted(ranks, "rank"));
  }
  return Success{};
}

/// One of several processes that another launcher started, which have met: a rank, or the launcher of the ranks of one
/// host.
static auto RunInPlace(const Plan& plan, const LaunchOptions& options, Meeting& meeting) -> ErrorOr<ExitCode> {
  const LaunchPlace& place = meeting.place();
  Facts facts = FactsOf(plan, options, place);
  const auto fingerprint = FingerprintOf(plan);
  // On a host that lacks the files, what it says of them is the difference.
  facts.emplace_back("tokens", fingerprint ? *fingerprint : fingerprint.error().message);
  // Last, as it follows from all others.
  facts.emplace_back("hash of the plan", PlanHash(plan));
  const Status fits = CheckPlace(plan, place);
  RETURN_IF_ERROR(meeting.Compare(facts, fits && !fingerprint ? Status(fingerprint.error()) : fits));
  RETURN_IF_ERROR(CheckHostCores(plan.mesh, meeting));
  return place.num_processes == plan.mesh.num_ranks() ? LaunchRank(plan, options, RunRank, meeting)
                                                      : LaunchHost(plan, options, RunRank, meeting);
}

/// The address by which GLOO_SOCKET_IFNAME has other hosts reach this one; empty if it is not set. It names interfaces,
/// or is an address of this host.
static auto OwnAddress(const LaunchPlace& place) -> ErrorOr<std::string> {
  const std::string names = TextOrNothing("GLOO_SOCKET_IFNAME");
  if (names.empty()) {
    return names;
  }
  auto address = AddressOfInterface(names);
  if (!address && IsAddressOfThisHost(names)) {
    address = names;
  }
  if (!address) {
    return Fail(ExitCode::Environment, "GLOO_SOCKET_IFNAME={}: {}", names, address.error().message);
  }
  if (IsHiddenFromOthers(place, *address)) {
    return Fail(ExitCode::Environment,
                "GLOO_SOCKET_IFNAME={} is {}, where other hosts do not reach this one; name the interface of the "
                "network between the hosts, or unset GLOO_SOCKET_IFNAME",
                names, *address);
  }
  return address;
}

/// Ends the waits of the meeting when this process has been told to stop. A wait that is over at that moment does not
/// end so, and the next one does, or the ranks hear of the signal. Signals are held back from now on until the process
/// ends: a second one must not take the place of the exit code.
static auto StopsBetweenWaits() -> std::function<Status()> {
  static const auto* const signals = new SignalScope;
  return []() -> Status {
    return signals->HasStop()
               ? Status(Fail(ExitCode::Preempted, "stopped by a signal before the ranks began, with nothing to save"))
               : Status(Success{});
  };
}

/// Tells the others that this process has no plan, and why. If it waits for one of them in vain, the error has both.
static auto MeetWithoutPlan(Meeting& meeting, const Error& why) -> Error {
  const Error error = meeting.Compare({}, why).error();
  // What all processes have agreed on has the reason of each.
  if (meeting.error_is_shared() || error.code == ExitCode::Preempted) {
    return error;
  }
  return Error{why.code, fmt::format("{}\nalso: {}", why.message, error.message)};
}

/// The part of this process in a launch by another launcher. `plan`: or why it has none.
static auto MeetAndRun(const LaunchPlace& place, ErrorOr<Plan> plan, const LaunchOptions& options)
    -> ErrorOr<ExitCode> {
  RaiseOpenFileLimit();
  const auto address = OwnAddress(place);
  if (plan && !address) {
    plan = address.error();
  }
  // The store of a launch of launchers has a connection for each of their ranks.
  const int64_t num_ranks = plan ? plan->mesh.num_ranks() : 0;
  if (const Status files = CheckOpenFileLimit(std::max(place.num_processes, num_ranks)); !files) {
    if (!CanOpenStore()) {
      // Not even to tell the others.
      return files.error();
    }
    if (plan) {
      plan = files.error();
    }
  }
  auto meeting = Meeting::Open(place, {.own_address = address ? *address : "",
                                       .timeout = options.timeout,
                                       .host_suffix = "",
                                       .interrupt = StopsBetweenWaits()});
  if (!meeting) {
    return meeting.error();
  }
  auto result = plan ? RunInPlace(*plan, options, *meeting) : MeetWithoutPlan(*meeting, plan.error());
  meeting->Close(result);
  // What all have is told by process 0, which may have done so.
  const bool is_told =
      options.refused_is_told && !result && options.refused->message.starts_with(result.error().message);
  if (!result && meeting->error_is_shared() && (!meeting->is_first() || is_told)) {
    return result.error().code;
  }
  return result;
}

/// Of a process whose variables are wrong: it says so here first, and then to the others, which wait for it.
static auto RefuseLaunch(const Error& error) -> ErrorOr<ExitCode> {
  const auto point = FindMeetingPoint(std::getenv);
  if (!point) {
    return error;
  }
  std::cerr << "error: " << Printable(error.message) << std::endl;
  TellLaunch(*point, error);
  return error.code;
}

/// A trace replaces nothing that the run reads.
static auto CheckTrace(const Plan& plan, const LaunchOptions& options) -> Status {
  std::vector<std::string> inputs = TokenFilesOf(plan);
  inputs.push_back(options.request.path);
  return options.trace.path.empty() ? Status(Success{}) : CheckReplacesNone("--trace", options.trace.path, inputs);
}

/// `recipe_path`: the file with the text of the recipe that the plan was made from, for the record.
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
    if (!text) {
      return Fail(text.error().code, "cannot read the recipe {}: {}", recipe_path, text.error().message);
    }
    CloseTextInMemory(recipe_path);
    options.request.recipe = *std::move(text);
  }
  options.request.torch_version = TorchVersion();
  if (!*place || (*place)->process == 0) {
    const auto end = EndOfJob(std::getenv);
    if (!end) {
      return end.error();
    }
    options.end_time = *end;
  }
  if (*place) {
    return MeetAndRun(**place, plan, options);
  }
  return MemoryMesh(*plan).hosts == 1 ? LaunchLocal(*plan, options, RunRank)
                                      : LaunchPlayedHosts(*plan, options, RunRank);
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

/// What is wrong with a range of steps; empty if nothing is.
static auto IsStepRange(const std::string& text) -> std::string {
  return ParseStepRange(text) ? "" : fmt::format("`{}` stands where steps belong, such as 5..8", text);
}

/// What is wrong with a path; empty if nothing is.
static auto IsGiven(const std::string& text) -> std::string { return text.empty() ? "the value is empty" : ""; }

/// What is wrong with a number of seconds; empty if nothing is.
static auto IsTimeout(const std::string& text) -> std::string { return ParseTimeout(text) ? "" : WrongTimeout(text); }

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

}  // namespace shardc

auto main(int argc, char** argv) -> int {
  using namespace shardc;
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
  app.add_option("plan", plan_path, "A plan that `shardc plan -o` wrote")->required();
  app.add_option("--run-dir", options.run_dir, "Directory of metrics and checkpoints (default: the plan's)")
      ->check(IsGiven);
  app.add_option("--eval", options.eval_checkpoint, "Evaluate this checkpoint instead of training");
  app.add_option("--format", format, "Format of the result: text or json")->check(CLI::IsMember({"text", "json"}));
  app.add_option("--timeout", options.timeout.value, "Seconds that a rank waits for the other ranks (default 600)")
      ->check(IsTimeout);
  std::string trace_steps{DefaultTraceSteps};
  app.add_option("--trace", options.trace.path, "Write what the ops of some steps took, in Chrome's trace format")
      ->check(IsGiven);
  app.add_option("--trace-steps", trace_steps, "Which steps, both included (default 5..8)")->check(IsStepRange);
  app.add_flag("--dry", options.dry, "Bind every op, but run none");
  // From `shardc run`.
  constexpr const char* Hidden = "";
  app.add_option("--asked", options.request.path, "For the record: the recipe or plan that the user named")
      ->group(Hidden);
  app.add_option("--asked-text", recipe_path, "For the record: a file with the text of that recipe")->group(Hidden);
  bool examines = false;
  app.add_flag("--doctor", examines, "Look at the hosts of the launch, and run nothing")->group(Hidden);
  int refused = 0;
  std::string refused_why;
  app.add_option("--refused", refused, "The recipe has no plan, by this exit code")->group(Hidden);
  app.add_option("--refused-why", refused_why, "Why")->group(Hidden);
  app.add_flag("--refused-is-told", options.refused_is_told, "Process 0 has told it")->group(Hidden);
  bool is_guarded = false;
  app.add_flag("--is-guarded", is_guarded, "The guard has been started")->group(Hidden);
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
  options.trace.steps = *ParseStepRange(trace_steps);
  if (refused != 0) {
    options.refused = Error{static_cast<ExitCode>(refused), refused_why};
  }
  if (!is_guarded) {
    StartGuard(std::getenv, options.timeout);
  }
  const auto result = examines ? Examine(options) : Run(plan_path, recipe_path, options);
  if (!result) {
    std::cerr << "error: " << Printable(result.error().message) << "\n";
    return static_cast<int>(result.error().code);
  }
  return static_cast<int>(*result);
}
