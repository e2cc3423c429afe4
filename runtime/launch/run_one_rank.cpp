// Makes the device and the links of a rank, runs its program on them, and finds out whose failure its error is.
#include "runtime/launch/run_one_rank.h"

#include <chrono>
#include <thread>

#include "runtime/comm/links.h"
#include "runtime/control/host_member.h"
#include "runtime/meet/host_watch.h"

namespace shardc {

/// Returns true if the error of a rank may come from the failure of another rank, on this host or elsewhere.
static auto MayBeFelt(const Job& job, const Error& own) -> bool {
  return job.meeting != nullptr && own.code == ExitCode::Environment;
}

/// Returns the failure of another rank that this rank's error comes from: its own host and the other hosts report it
/// within seconds. Returns nothing if nobody does; the hosts that give no sign of life are then appended to the message
/// of `own`.
static auto CauseElsewhere(const Job& job, int64_t rank, Error& own) -> std::optional<RankFailure> {
  if (job.control->HasHeard(rank)) {
    return job.control->FirstFailure();
  }
  if (!MayBeFelt(job, own)) {
    return std::nullopt;
  }
  // All looks end by one time, however long the store takes.
  constexpr auto Longest = std::chrono::milliseconds(2500);
  constexpr auto SecondLook = std::chrono::milliseconds(500);
  constexpr auto Between = std::chrono::milliseconds(50);
  const auto end = std::chrono::steady_clock::now() + Longest;
  std::optional<SilentHosts> silent;
  while (std::chrono::steady_clock::now() < end - SecondLook) {
    if (const auto cause = job.control->FirstFailure()) {
      return cause;
    }
    if (!silent) {
      silent.emplace(job.meeting->network(), job.plan->mesh.hosts, end);
    }
    if (silent->has_no_answer()) {
      break;
    }
    std::this_thread::sleep_for(Between);
  }
  if (const std::string text = silent ? silent->Text() : ""; !text.empty()) {
    own.message += "; " + text;
  }
  return job.control->FirstFailure();
}

/// Prints the error of a rank, or its cause if another rank has failed before, and returns which of them it was. A
/// failure is printed once per host, and before the caller makes it known to other ranks, so that the first error is
/// printed first.
static auto ReportFailure(const Job& job, int64_t rank, pid_t launcher, Error error) -> Error {
  if (const auto cause = CauseElsewhere(job, rank, error)) {
    error = {cause->code, job.control->FailureText(*cause)};
    // A launcher that forked the ranks prints how one of them ended.
    const bool is_printed_by_launcher = launcher != 0 && cause->rank != RankFailure::Elsewhere;
    if (!is_printed_by_launcher && job.control->IsFirst(error.message)) {
      job.Say("error: " + error.message);
    }
  } else if (MayBeFelt(job, error) ? job.control->IsFirst(error.message) : job.control->IsNews(error.message)) {
    job.Say(fmt::format("error: {}: {}", job.control->NameOf(rank), error.message));
  }
  return error;
}

auto RunOneRank(const Job& job, int64_t rank, pid_t launcher) -> ExitCode {
  const LaunchOptions& options = *job.options;
  const std::string name = job.control->NameOf(rank);
  const WaitOptions waits{.timeout = options.timeout, .warn = [&job, name](const std::string& text) {
                            job.Say(fmt::format("warning: {} {}", name, text));
                          }};
  const auto run = [&](RankDevice& device, const Links& links) -> ErrorOr<ExitCode> {
    RankContext context{.plan = job.plan,
                        .rank = rank,
                        .launcher = launcher,
                        .device = &device,
                        .comm = links.communicator.get(),
                        .control = links.control.get(),
                        .options = options,
                        .directory = job.directory ? &*job.directory : nullptr,
                        .lease = job.lease.get(),
                        .attempt = job.attempt ? &*job.attempt : nullptr,
                        .log = &job.log(),
                        .data_digests = job.scanned.digests,
                        .execution = {}};
    auto code = (*job.rank_main)(context);
    if (code) {
      RETURN_IF_ERROR(links.communicator->Close());
    }
    return code;
  };
  // A rank that waits for one on its own host knows where that one is: it gives up first.
  const Seconds for_hosts{options.timeout.value + 0.5};
  job.control->Join(rank);
  const auto member = std::make_shared<HostMember>(*job.control, rank, waits);
  const auto device =
      MakeDevice(*job.plan, {.arenas = &job.arenas,
                             .rank = rank,
                             .local_rank = options.hosts_are_played ? rank : rank - job.control->ranks().begin,
                             .member = member.get(),
                             .look = [&job, rank] { return job.control->Listen(rank); },
                             .timeout = job.meeting == nullptr ? options.timeout : for_hosts,
                             .shuffles = options.shuffles});
  const auto links = device ? MakeLinks(*job.plan, member, **device, job.arenas, for_hosts,
                                        job.meeting == nullptr ? nullptr : &job.meeting->network())
                            : ErrorOr<Links>(device.error());
  const ErrorOr<ExitCode> result = links ? run(**device, *links) : ErrorOr<ExitCode>(links.error());
  if (result) {
    job.control->Finish(rank);
    return *result;
  }
  const Error error = ReportFailure(job, rank, launcher, result.error());
  job.control->MarkFailed(rank, error);
  return error.code;
}

}  // namespace shardc
