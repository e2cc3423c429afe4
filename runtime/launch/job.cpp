#include "runtime/launch/job.h"

#include <algorithm>
#include <thread>

#include "compiler/base/printable.h"
#include "compiler/base/processor.h"
#include "compiler/base/stopwatch.h"
#include "compiler/cost/notes.h"
#include "compiler/data/document_facts.h"
#include "compiler/plan/exchange.h"
#include "runtime/core/compute_threads.h"
#include "runtime/launch/machine_notes.h"
#include "runtime/launch/needed_memory.h"
#include "runtime/launch/shared_file.h"
#include "runtime/launch/shared_folder.h"
#include "runtime/memory/available_memory.h"

namespace shardc {

/// Returns a function that makes the other processes wait on. It returns the error `stopped` after a signal to stop.
static auto MayContinue(const Job& job, const SignalScope* signals, const std::string& stopped)
    -> std::function<Status()> {
  return [meeting = job.meeting, signals, stopped]() -> Status {
    FAIL_IF(signals != nullptr && signals->TakeStop(), ExitCode::Preempted, "{}", stopped);
    return meeting == nullptr ? Status(Success{}) : meeting->Hold();
  };
}

static auto Trains(const LaunchOptions& options) -> bool {
  return !options.run_dir.empty() && options.eval_checkpoint.empty() && !options.init;
}

static auto HostOf(const Job& job) -> int64_t { return job.meeting == nullptr ? 0 : job.meeting->place().host(); }

/// Scans the token files of a launch that trains, or whose hosts have to have the same files. Requires: this launch
/// does not own the run directory yet: a lease needs signs of life, and a scan may take long.
static auto LookAtTokens(Job& job, const SignalScope* signals) -> Status {
  const LaunchOptions& options = *job.options;
  const bool compares = job.meeting != nullptr && job.meeting->place().num_hosts() > 1;
  if (options.dry || !(Trains(options) || compares)) {
    return Success{};
  }
  const TokenScan scan{.run_dir = options.run_dir,
                       .host = HostOf(job),
                       .may_continue = MayContinue(job, signals, "stopped while it looked at the token ids"),
                       .log = &job.only_stderr,
                       .trains = Trains(options)};
  ASSIGN_OR_RETURN(job.scanned, job.meeting == nullptr ? ScanTokens(*job.plan, scan)
                                                       : ScanTokensTogether(*job.plan, scan, *job.meeting));
  return Success{};
}

/// Tells what the documents of the token files give the run. Errors: documents that cannot be trained on.
static auto JudgeDocuments(Job& job) -> Status {
  const Plan& plan = *job.plan;
  if (job.options->dry || !plan.data.splits_documents() || !IsQuickToLookAt(plan)) {
    return Success{};
  }
  ASSIGN_OR_RETURN(const auto documents, LookAtDocuments(plan, std::min<int64_t>(NumCores(), 8)));
  job.only_stderr.Print(Printable(DocumentsText(plan, documents)));
  for (const DocumentFacts& of : documents.sources) {
    RETURN_IF_ERROR(CheckKeepsTargets(plan.data, of));
  }
  return Success{};
}

/// Makes it this launch's own. One that trains begins its record.
static auto TakeRunDirectory(Job& job, const SignalScope* signals) -> Status {
  const LaunchOptions& options = *job.options;
  ASSIGN_OR_RETURN(job.directory, RunDirectory::Open(options.run_dir));
  ASSIGN_OR_RETURN(job.lease,
                   Lease::Acquire(options.run_dir, job.plan->run.run_id,
                                  {.what = "run directory",
                                   .remedy = "give the other launch another `--run-dir`",
                                   .file_name = RunLeaseName,
                                   .beats_at_once = false,
                                   .while_waiting = MayContinue(
                                       job, signals, fmt::format("stopped while it waited for {}", options.run_dir)),
                                   .note = [](const std::string& note) { RunLog().Print(note + "\n"); }}));
  RETURN_IF_ERROR(RecordScan(*job.directory, HostOf(job), job.scanned));
  if (!options.dry) {
    auto attempt = Attempt::Begin(job.directory->folder(), *job.plan, options.request);
    FAIL_IF(!attempt, attempt.error().code, "cannot put this launch on record: {}", attempt.error().message);
    job.attempt = *std::move(attempt);
    SetCheckLog(job.log().descriptor());
  }
  return Success{};
}

/// Returns where the arenas begin in a file that has the control block before them.
static auto BlockBytesInFile(const ControlBlock::Place& place) -> int64_t {
  return RoundUp(ControlBlock::BytesFor(place), PageSize());
}

static auto BytesInFile(const Plan& plan, const ControlBlock::Place& place) -> int64_t {
  return BlockBytesInFile(place) +
         SharedArenas::BytesInFile(HostArenas(plan), place.mesh.RanksOfHost(place.host), plan.mesh.ranks_per_host());
}

/// Makes the control block and the shared arenas, in the file of the place if it has one.
static auto MapMemory(Job& job, const ControlBlock::Place& place) -> Status {
  ASSIGN_OR_RETURN(job.control, ControlBlock::Create(place));
  ASSIGN_OR_RETURN(job.arenas, SharedArenas::Create(
                                   HostArenas(*job.plan), job.control->ranks(), job.plan->mesh.ranks_per_host(),
                                   {.descriptor = place.file, .begin = place.file < 0 ? 0 : BlockBytesInFile(place)}));
  return Success{};
}

/// Makes the memory that the ranks of this host share.
static auto ShareMemory(Job& job, ControlBlock::Members members) -> Status {
  const Plan& plan = *job.plan;
  ControlBlock::Place place{.mesh = MemoryMesh(plan), .members = members, .plan = &plan};
  bool in_file = false;
  bool is_maker = true;
  if (Meeting* meeting = job.meeting) {
    place.host = meeting->place().host();
    place.host_name = meeting->host_name();
    in_file = meeting->place().local_num_processes > 1;
    is_maker = meeting->is_first_of_host();
  }
  if (!in_file) {
    return MapMemory(job, place);
  }
  // The first process of the host makes the file, and tells the others its name; no name if it has none.
  const std::string key = fmt::format("memory/{}", place.host);
  place.is_made = !is_maker;
  const auto open = [&]() -> Status {
    ASSIGN_OR_RETURN(const auto name,
                     is_maker ? ErrorOr<std::string>("")
                              : job.meeting->Hear(key, place.host * job.meeting->place().local_num_processes));
    ASSIGN_OR_RETURN(job.memory, is_maker ? MakeSharedFile(BytesInFile(plan, place)) : OpenSharedFile(name));
    place.file = job.memory.get();
    return MapMemory(job, place);
  };
  Status opened = open();
  if (is_maker) {
    const Status told = job.meeting->Tell(key, opened ? NameOfSharedFile(job.memory) : "");
    opened = opened ? told : opened;
  }
  return opened;
}

/// A file that another host has renamed shows within this time.
static constexpr Seconds MostVisible{10};

/// Joins the attempt that process 0 has begun, for the other processes: on their hosts it has to show in the run
/// directory. `attempt`: its number and its text.
static auto JoinRunDirectory(Job& job, const std::string& attempt) -> Status {
  if (attempt.empty()) {
    return Success{};
  }
  ASSIGN_OR_RETURN(job.directory, RunDirectory::Open(job.options->run_dir));
  const bool is_of_first_host = job.meeting->place().host() == 0;
  const std::string number = attempt.substr(0, attempt.find(' '));
  const auto join = [&] {
    return JoinAttempt(job.directory->folder(), std::stoll(number), attempt.substr(number.size() + 1),
                       is_of_first_host ? std::nullopt : std::optional(job.meeting->place().host()));
  };
  // What another host has made may take a while to show.
  const Seconds longest = LongestVisible(*job.meeting, MostVisible);
  const Stopwatch watch;
  auto log = join();
  while (!log && watch.Elapsed() < longest) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    log = join();
  }
  FAIL_IF(!log, log.error().code,
          "{} cannot use attempt {} of the run directory {}, which process 0 has just begun: {}; all hosts have "
          "to share the run directory, and to write to it",
          job.meeting->host_name(), number, job.options->run_dir, log.error().message);
  job.joined_log.emplace(*std::move(log));
  return RecordScan(*job.directory, HostOf(job), job.scanned);
}

/// Checkpoints are written by all hosts. Inside the run directory all of them see the folder.
static auto ProbeCheckpoints(const Job& job) -> Status {
  const std::string& folder = job.plan->run.checkpoint_dir;
  if (job.options->dry || folder.empty() || (folder + "/").starts_with(job.options->run_dir + "/")) {
    return Success{};
  }
  std::optional<Seconds> seen;
  return ProbeSharedFolder(*job.meeting,
                           {.what = "folder of the checkpoints (checkpoint.dir)",
                            .path = folder,
                            .longest_visible = LongestVisible(*job.meeting, MostVisible)},
                           seen);
}

/// Compares what all hosts of the job on this machine take with what they may take.
static auto CheckMemory(const Plan& plan, Meeting* meeting) -> Status {
  const OutsideArenas outside = OutsideArenasOf(plan, NumComputeThreads(plan));
  const AvailableMemory available = MeasureAvailableMemory();
  if (meeting == nullptr) {
    return CheckPlanFits(plan, outside, available, 1);
  }
  ASSIGN_OR_RETURN(const auto pools, meeting->Gather("memory pool", meeting->is_first_of_host() ? available.pool : ""));
  const auto num_hosts = std::ranges::count(pools, available.pool);
  return meeting->Agree(
      "fits", meeting->is_first_of_host() ? CheckPlanFits(plan, outside, available, num_hosts) : Status(Success{}));
}

auto PrepareJob(const Plan& plan, ControlBlock::Members members, const LaunchOptions& options,
                const RankMain& rank_main, const SignalScope* signals, Meeting* meeting) -> ErrorOr<Job> {
  Job job;
  job.plan = &plan;
  job.options = &options;
  job.rank_main = &rank_main;
  job.meeting = meeting;
  FAIL_IF(meeting == nullptr && plan.run.comm != Comm::Shm, ExitCode::Environment,
          "the ranks of the plan communicate over a network (run.comm is {}), and this launch has none",
          ToText(plan.run.comm));
  RETURN_IF_ERROR(ControlBlock::CheckRanks(MemoryMesh(plan)));
  // Judging a plan takes several times the memory that it has, which each rank would inherit.
  GiveBackFreedMemory();
  RETURN_IF_ERROR(CheckMemory(plan, meeting));
  Status prepared = ShareMemory(job, members);
  if (meeting != nullptr) {
    prepared = meeting->Agree("memory", prepared);
  }
  RETURN_IF_ERROR(prepared);
  RETURN_IF_ERROR(LookAtTokens(job, signals));
  if (!Trains(options)) {
    return job;
  }
  if (meeting == nullptr || meeting->is_first()) {
    prepared = JudgeDocuments(job);
    prepared = prepared ? TakeRunDirectory(job, signals) : prepared;
    if (prepared && !options.dry) {
      const int64_t ranks_here = meeting == nullptr ? plan.mesh.num_ranks() : plan.mesh.ranks_per_host();
      job.log().Print(Printable(NotesText(plan, LookAtData(plan)) + MachineNotes(plan, ranks_here, options.run_dir)));
    }
  }
  if (meeting != nullptr) {
    prepared = prepared && meeting->is_first() ? meeting->EndHold() : prepared;
    RETURN_IF_ERROR(meeting->Agree("run directory", prepared));
    const std::string key = "attempt";
    if (meeting->is_first()) {
      RETURN_IF_ERROR(
          meeting->Tell(key, job.attempt ? fmt::format("{} {}", job.attempt->number(), job.attempt->text()) : ""));
    } else {
      const auto attempt = meeting->Hear(key, 0);
      prepared = attempt ? JoinRunDirectory(job, *attempt) : attempt.error();
    }
    prepared = meeting->Agree("attempt", prepared);
    prepared = prepared ? ProbeCheckpoints(job) : prepared;
  }
  if (!prepared) {
    PutEndOnRecord(job, ErrorOr<ExitCode>(prepared.error()));
    return prepared.error();
  }
  return job;
}

auto KeepLease(const Job& job) -> Status {
  return job.lease == nullptr ? Status(Success{}) : job.lease->StartBeating();
}

auto PutEndOnRecord(const Job& job, int exit_code, const std::string& error) -> void {
  if (!job.attempt) {
    return;
  }
  const int64_t completed = job.control->completed_steps().load();
  const Status recorded =
      job.attempt->RecordEnd(exit_code, error, completed < 0 ? std::nullopt : std::optional(completed));
  if (!recorded) {
    job.Say(fmt::format("warning: the end of this attempt is not on record: {}", recorded.error().message));
  }
  SetCheckLog(-1);
}

auto PutEndOnRecord(const Job& job, const ErrorOr<ExitCode>& result) -> void {
  PutEndOnRecord(job, static_cast<int>(result ? *result : result.error().code), result ? "" : result.error().message);
}

}  // namespace shardc
