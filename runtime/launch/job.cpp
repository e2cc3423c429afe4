#include "runtime/launch/job.h"

#include "runtime/comm/links.h"
#include "runtime/core/compute_threads.h"
#include "runtime/launch/needed_memory.h"
#include "runtime/memory/available_memory.h"

namespace shardc {

/// Makes it this launch's own. One that trains begins its record.
static auto TakeRunDirectory(Job& job, const SignalScope* signals) -> Status {
  const LaunchOptions& options = *job.options;
  auto directory = RunDirectory::Open(options.run_dir);
  if (!directory) {
    return directory.error();
  }
  job.directory = *std::move(directory);
  auto lease = Lease::Acquire(
      options.run_dir, job.plan->run.run_id,
      {.what = "run directory",
       .remedy = "give the other launch another `--run-dir`",
       .file_name = RunLeaseName,
       .beats_at_once = false,
       .while_waiting = [&]() -> Status {
         return signals != nullptr && signals->TakeStop()
                    ? Status(Fail(ExitCode::Preempted, "stopped while it waited for {}", options.run_dir))
                    : Status(Success{});
       },
       .note = [](const std::string& note) { RunLog().Print(note + "\n"); }});
  if (!lease) {
    return lease.error();
  }
  job.lease = *std::move(lease);
  if (!options.dry) {
    auto attempt = Attempt::Begin(job.directory->folder(), *job.plan, options.request);
    if (!attempt) {
      return Fail(attempt.error().code, "cannot put this launch on record: {}", attempt.error().message);
    }
    job.attempt = *std::move(attempt);
    SetCheckLog(job.log().descriptor());
  }
  return Success{};
}

auto PrepareJob(const Plan& plan, ControlBlock::Members members, const LaunchOptions& options,
                const RankMain& rank_main, const SignalScope* signals) -> ErrorOr<Job> {
  Job job;
  job.plan = &plan;
  job.options = &options;
  job.rank_main = &rank_main;
  if (plan.mesh.hosts != 1) {
    return Fail(ExitCode::Environment, "the plan is for {} hosts, and this launch has one", plan.mesh.hosts);
  }
  auto control = ControlBlock::Create({.mesh = plan.mesh, .members = members, .plan = &plan});
  if (!control) {
    return control.error();
  }
  job.control = *std::move(control);
  // Judging a plan takes several times the memory that it has, which each rank would inherit.
  GiveBackFreedMemory();
  RETURN_IF_ERROR(CheckPlanFits(plan, OutsideArenasOf(plan, NumComputeThreads(plan))));
  auto arenas = SharedArenas::Create(plan.arena_bytes, job.control->ranks());
  if (!arenas) {
    return arenas.error();
  }
  job.arenas = *std::move(arenas);
  if (!options.run_dir.empty() && options.eval_checkpoint.empty()) {
    RETURN_IF_ERROR(TakeRunDirectory(job, signals));
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

auto RunOneRank(const Job& job, int64_t rank, pid_t launcher) -> ExitCode {
  const LaunchOptions& options = *job.options;
  const WaitOptions waits{.timeout = options.timeout, .warn = [&job, rank](const std::string& text) {
                            job.Say(fmt::format("warning: rank {} {}", rank, text));
                          }};
  const Links links = MakeLinks(*job.plan, rank, *job.control, job.arenas, waits);
  RankControl& control = *links.control;
  const auto run = [&]() -> ErrorOr<ExitCode> {
    const auto device = MakeDevice(*job.plan, {.arenas = &job.arenas, .rank = rank, .shuffles = options.shuffles});
    if (!device) {
      return device.error();
    }
    RankContext context{.plan = job.plan,
                        .rank = rank,
                        .launcher = launcher,
                        .device = device->get(),
                        .comm = links.communicator.get(),
                        .control = &control,
                        .run_dir = options.run_dir,
                        .directory = job.directory ? &*job.directory : nullptr,
                        .lease = job.lease.get(),
                        .attempt = job.attempt ? &*job.attempt : nullptr,
                        .log = &job.log(),
                        .eval_checkpoint = options.eval_checkpoint,
                        .dry = options.dry,
                        .json = options.json,
                        .execution = {}};
    return (*job.rank_main)(context);
  };
  const ErrorOr<ExitCode> result = run();
  if (result) {
    control.Finish();
    return *result;
  }
  // Printed before the others can know, so that the first error stands first.
  if (control.IsNews(result.error().message)) {
    job.Say(fmt::format("error: rank {}: {}", rank, result.error().message));
  }
  control.MarkFailed(result.error().code);
  return result.error().code;
}

}  // namespace shardc
