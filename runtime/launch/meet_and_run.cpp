#include "runtime/launch/meet_and_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "compiler/base/printable.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/version.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/plan/exchange.h"
#include "compiler/plan/text.h"
#include "runtime/core/runner.h"
#include "runtime/data/token_reader.h"
#include "runtime/launch/host_cores.h"
#include "runtime/launch/stop_signals.h"
#include "runtime/meet/meeting.h"
#include "runtime/meet/tell_launch.h"
#include "runtime/net/address.h"
#include "runtime/net/open_file_limit.h"

namespace shardc {

/// Returns what the processes of a launch have to be asked alike.
static auto TextOf(const GenerateRequest& asked) -> std::string {
  return fmt::format("{}; {}; {}; {:a}; {}; {}", fmt::join(asked.ids, " "), asked.logits, asked.num_sampled,
                     asked.temperature, asked.seed, asked.are_bytes);
}

/// Returns the facts that have to be the same in all processes of a launch.
static auto FactsOf(const Plan& plan, const LaunchOptions& options, const LaunchPlace& place) -> Facts {
  std::string sets;
  for (const std::string& set : plan.overrides) {
    // The launch adds the number of its hosts, which is the same in all processes.
    if (set != fmt::format("mesh.hosts={}", place.num_hosts())) {
      sets += (sets.empty() ? "" : " ") + set;
    }
  }
  const std::optional<std::string>& recipe = options.request.recipe;
  Facts facts{{"shardc --version", std::string(ProgramVersion())},
              {"LibTorch", options.request.torch_version},
              {"bytes of the recipe", recipe ? std::to_string(recipe->size()) : "none, but a plan file"},
              {"digest of the recipe", recipe ? DigestOf(*recipe) : ""},
              {"--set", sets},
              {"run.device, by what the machine has", std::string(ToText(plan.device))}};
#define RUN_OPTION(Name, name, flag, Type, initial, help) facts.emplace_back(flag, Type##Option::FactOf(options.name));
#include "schemas/run_options.def"
  facts.emplace_back("--eval", options.eval_checkpoint);
  facts.emplace_back("--init", options.init ? "yes" : "no");
  facts.emplace_back("ids and what is asked of them", options.generate ? DigestOf(TextOf(*options.generate)) : "");
  return facts;
}

/// Returns a fingerprint of the token files on this host. Errors: they are missing or cannot be read.
static auto FingerprintOf(const Plan& plan) -> ErrorOr<std::string> {
  ASSIGN_OR_RETURN(const auto tokens,
                   TokenReader::Open(plan.data, plan.heads, {SamplesPerStep(plan), plan.run.schedule_steps()}));
  return tokens->Fingerprint();
}

static auto TextOrNothing(const char* variable) -> std::string {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

/// Returns an error if the plan does not fit where the launcher has put the processes.
static auto CheckPlace(const Plan& plan, const LaunchPlace& place) -> Status {
  const int64_t ranks = plan.mesh.num_ranks();
  FAIL_IF(place.num_hosts() != plan.mesh.hosts, ExitCode::Environment,
          "the plan is for {}, and {} started processes on {}", Counted(plan.mesh.hosts, "host"), place.launcher,
          place.num_hosts());
  FAIL_IF(MemoryMesh(plan).hosts != plan.mesh.hosts, ExitCode::Environment,
          "run.comm is \"shm\", by which the ranks of one machine communicate, and {} started processes on {}; leave "
          "run.comm out",
          place.launcher, Counted(place.num_hosts(), "host"));
  FAIL_IF(place.num_processes != ranks && place.local_num_processes != 1, ExitCode::Environment,
          "{} started {} processes on {}, and the mesh has {}; start one process for each rank, or one for each host{}",
          place.launcher, place.num_processes, Counted(place.num_hosts(), "host"), Counted(ranks, "rank"),
          HelpInShell(place));
  return Success{};
}

/// Runs the part of this process, which another launcher started as one of several that have met: a rank, or the
/// launcher of the ranks of one host.
static auto RunInPlace(const Plan& plan, const LaunchOptions& options, Meeting& meeting) -> ErrorOr<ExitCode> {
  const LaunchPlace& place = meeting.place();
  Facts facts = FactsOf(plan, options, place);
  const auto fingerprint = FingerprintOf(plan);
  // On a host that lacks the files, what it says of them is the difference.
  facts.emplace_back("tokens", fingerprint ? *fingerprint : fingerprint.error().message);
  // Last, as it follows from all others.
  facts.emplace_back("hash of the plan", PlanHash(plan));
  RETURN_IF_ERROR(meeting.Compare(facts, fingerprint ? Status(Success{}) : fingerprint.error()));
  RETURN_IF_ERROR(CheckHostCores(plan.mesh, meeting));
  return place.num_processes == plan.mesh.num_ranks() ? LaunchRank(plan, options, RunRank, meeting)
                                                      : LaunchHost(plan, options, RunRank, meeting);
}

auto OwnAddress(const LaunchPlace& place) -> ErrorOr<std::string> {
  const std::string names = TextOrNothing("GLOO_SOCKET_IFNAME");
  if (names.empty()) {
    return names;
  }
  auto address = AddressOfInterface(names);
  if (!address && IsAddressOfThisHost(names)) {
    address = names;
  }
  FAIL_IF(!address, ExitCode::Environment, "GLOO_SOCKET_IFNAME={}: {}", names, address.error().message);
  FAIL_IF(IsHiddenFromOthers(place, *address), ExitCode::Environment,
          "GLOO_SOCKET_IFNAME={} is {}, where other hosts do not reach this one; name the interface of the "
          "network between the hosts, or unset GLOO_SOCKET_IFNAME",
          names, *address);
  return address;
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

/// Refuses a launch for a reason that each of its processes finds in its own variables: none waits for another, which
/// may not exist, and process 0 prints the error.
static auto RefuseAlike(const LaunchPlace& place, const Error& error) -> ExitCode {
  if (place.process == 0) {
    std::cerr << "error: " << Printable(error.message) << std::endl;
  }
  TellLaunch(place, error);
  return error.code;
}

auto MeetAndRun(const LaunchPlace& place, ErrorOr<Plan> plan, const LaunchOptions& options) -> ErrorOr<ExitCode> {
  const Status fits = plan ? CheckPlace(*plan, place) : Status(Success{});
  if (!fits || options.refused_by_all) {
    return RefuseAlike(place, fits ? plan.error() : fits.error());
  }
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
  ASSIGN_OR_RETURN(auto meeting, Meeting::Open(place, {.own_address = address ? *address : "",
                                                       .timeout = options.timeout,
                                                       .host_suffix = "",
                                                       .interrupt = StopsBetweenWaits()}));
  auto result = plan ? RunInPlace(*plan, options, meeting) : MeetWithoutPlan(meeting, plan.error());
  meeting.Close(result);
  // What all have is told by process 0, which may have done so.
  const bool is_told =
      options.refused_is_told && !result && options.refused->message.starts_with(result.error().message);
  if (!result && meeting.error_is_shared() && (!meeting.is_first() || is_told)) {
    return result.error().code;
  }
  return result;
}

auto RefuseLaunch(const Error& error) -> ErrorOr<ExitCode> {
  const auto point = FindMeetingPoint(std::getenv);
  if (!point) {
    return error;
  }
  std::cerr << "error: " << Printable(error.message) << std::endl;
  TellLaunch(*point, error);
  return error.code;
}

}  // namespace shardc
