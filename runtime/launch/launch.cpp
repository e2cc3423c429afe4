#include "runtime/launch/launch.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/launch/run_one_rank.h"
#include "runtime/launch/stop_signals.h"
#include "runtime/meet/host_watch.h"
#include "runtime/meet/meeting.h"
#include "runtime/memory/available_memory.h"

namespace shardc {

using Clock = std::chrono::steady_clock;

/// Runs a forked rank to its end.
[[noreturn]] static auto RunChild(const Job& job, int64_t rank, pid_t launcher) -> void {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) {
    _exit(static_cast<int>(ExitCode::Environment));
  }
  CatchStopSignals(job.control->stop_flag());
  const ExitCode code = RunOneRank(job, rank, launcher);
  // Without the exit handlers: they belong to the launcher, and those of libraries may wait for threads.
  std::cout.flush();
  std::fflush(nullptr);
  _exit(static_cast<int>(code));
}

namespace {

/// Watches the forked ranks of one job until the last has ended.
class Launcher {
 public:
  Launcher(Job job, const SignalScope* signals) : job_(std::move(job)), signals_(*signals) {}

  auto Start() -> Status;
  auto Watch() -> ExitCode;
  auto job() const -> const Job& { return job_; }

 private:
  struct Child {
    int64_t rank = 0;
    pid_t pid = 0;
    bool running = false;
    ExitCode code = ExitCode::Ok;
  };

  auto HandleSignal(int signal) -> void;
  auto Reap() -> void;
  auto HandleExit(Child& child, int status) -> void;
  auto EndTheRest() -> void;
  auto SignalAll(int signal) -> void;
  /// Ends all processes of a job that does not start.
  auto EndAll() -> void;

  Job job_;
  const SignalScope& signals_;
  std::vector<Child> children_;
  /// The watch of a launch over several hosts, from when the ranks are forked.
  std::unique_ptr<HostWatch> watch_;
  int interrupts_ = 0;
  std::optional<Clock::time_point> failed_at_;
  /// The last signal that the launcher itself sent. From the first one on it reports no deaths.
  int sent_ = 0;
};

}  // namespace

/// Reports the failure of the job, unless an error was reported on this host already.
static auto TellIfNobodyHas(const Job& job, const std::string& failure) -> void {
  if (job.control->IsFirst(failure)) {
    job.Say("error: " + failure);
  }
}

/// Ends the calling rank, which has not ended `grace` after the failure of another one, and which no other process
/// would end.
static auto LeaveAtOnce(const Job& job, int64_t rank) -> void {
  const auto failure = job.control->FirstFailure();
  const std::string text = job.control->FailureText(*failure);
  TellIfNobodyHas(job, text);
  job.Say(fmt::format("warning: {} has not ended {:g} s after the failure and ends at once, {}",
                      job.control->NameOf(rank), job.options->grace.value, job.control->WhereIs(rank)));
  PutEndOnRecord(job, static_cast<int>(failure->code), text);
  _exit(static_cast<int>(failure->code));
}

auto Launcher::Start() -> Status {
  // What is buffered would be written once per rank.
  std::cout.flush();
  std::fflush(nullptr);
  // What the record of the attempt took.
  GiveBackFreedMemory();
  const pid_t launcher = getpid();
  const Interval ranks = job_.control->ranks();
  for (int64_t rank = ranks.begin; rank < ranks.end; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      RunChild(job_, rank, launcher);
    }
    if (pid < 0) {
      const int error = errno;
      EndAll();
      return Fail(ExitCode::Environment, "cannot start rank {} of {}: {}", rank, job_.plan->mesh.num_ranks(),
                  std::strerror(error));
    }
    children_.push_back({.rank = rank, .pid = pid, .running = true});
  }
  if (const Meeting* meeting = job_.meeting) {
    watch_ = std::make_unique<HostWatch>(*job_.control, HostWatch::Options{.network = meeting->network(),
                                                                           .host = meeting->place().host(),
                                                                           .member = meeting->place().process,
                                                                           .member_name = meeting->OwnName(),
                                                                           .timeout = job_.options->timeout});
  }
  const Status kept = KeepLease(job_);
  if (!kept) {
    EndAll();
  }
  return kept;
}

auto Launcher::Watch() -> ExitCode {
  const auto any_running = [&] {
    for (const Child& child : children_) {
      if (child.running) {
        return true;
      }
    }
    return false;
  };
  while (any_running()) {
    HandleSignal(signals_.Next());
    Reap();
    EndTheRest();
  }
  if (const auto failure = job_.control->FirstFailure()) {
    // It may have come from another host when the ranks of this one had just ended.
    TellIfNobodyHas(job_, job_.control->FailureText(*failure));
    return failure->code;
  }
  for (const Child& child : children_) {
    if (child.code != ExitCode::Ok) {
      return child.code;
    }
  }
  return ExitCode::Ok;
}

auto Launcher::HandleSignal(int signal) -> void {
  if (signal == SIGINT && ++interrupts_ > 1) {
    SignalAll(SIGKILL);
    PutEndOnRecord(job_, 128 + SIGINT, "interrupted twice");
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }
  if (signals_.AsksForStop(signal)) {
    job_.control->stop_flag().store(true);
  }
}

auto Launcher::Reap() -> void {
  for (Child& child : children_) {
    int status = 0;
    if (child.running && waitpid(child.pid, &status, WNOHANG) == child.pid) {
      child.running = false;
      HandleExit(child, status);
    }
  }
}

/// Returns reasons for which the kernel may have killed a rank.
static auto KilledText() -> std::string {
  const std::string limit = GroupLimitText();
  return fmt::format("; the kernel sends SIGKILL when memory runs out{}", limit.empty() ? "" : ": " + limit);
}

auto Launcher::HandleExit(Child& child, int status) -> void {
  ControlBlock& block = *job_.control;
  const int64_t rank = child.rank;
  if (WIFEXITED(status)) {
    child.code = static_cast<ExitCode>(WEXITSTATUS(status));
    if (block.StateOf(rank) == RankState::Finished) {
      return;
    }
  }
  RankFailure failure{.rank = rank, .code = ExitCode::Environment};
  if (WIFSIGNALED(status)) {
    failure.signal = WTERMSIG(status);
  } else if (child.code == ExitCode::Ok) {
    // Somebody called exit() in the middle of it.
    failure.code = ExitCode::InternalFault;
  } else {
    failure.code = child.code;
  }
  const bool reported = WIFEXITED(status) && block.StateOf(rank) == RankState::Failed;
  const std::string text = block.FailureText(failure);
  if (!reported && sent_ == 0 && block.IsNews(text)) {
    job_.Say(fmt::format("error: {}{}", text, failure.signal == SIGKILL ? KilledText() : ""));
  }
  block.MarkFailed(rank, failure.code, failure.signal);
}

auto Launcher::EndTheRest() -> void {
  if (!failed_at_) {
    if (!job_.control->FirstFailure()) {
      return;
    }
    failed_at_ = Clock::now();
  }
  const double since = std::chrono::duration<double>(Clock::now() - *failed_at_).count();
  const double grace = job_.options->grace.value;
  if (since >= grace && sent_ == 0) {
    // No rank of this host may have come to where it learns of it.
    TellIfNobodyHas(job_, job_.control->FailureText(*job_.control->FirstFailure()));
    for (const Child& child : children_) {
      if (child.running) {
        job_.Say(fmt::format("warning: {} has not ended {:g} s after the failure and is ended, {}",
                             job_.control->NameOf(child.rank), grace, job_.control->WhereIs(child.rank)));
      }
    }
    sent_ = SIGTERM;
    SignalAll(sent_);
  }
  if (since >= grace + 1 && sent_ == SIGTERM) {
    sent_ = SIGKILL;
    SignalAll(sent_);
  }
}

auto Launcher::SignalAll(int signal) -> void {
  for (const Child& child : children_) {
    if (child.running) {
      kill(child.pid, signal);
    }
  }
}

auto Launcher::EndAll() -> void {
  SignalAll(SIGKILL);
  for (const Child& child : children_) {
    waitpid(child.pid, nullptr, 0);
  }
}

/// Launches the ranks of this host as processes. `meeting`: null if all ranks are on this host.
static auto LaunchProcesses(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main, Meeting* meeting)
    -> ErrorOr<ExitCode> {
  // Before the run directory is taken: from here on a signal leaves no launch without an end on record.
  const SignalScope signals;
  ASSIGN_OR_RETURN(auto job, PrepareJob(plan, ControlBlock::Members::Processes, options, rank_main, &signals, meeting));
  if (meeting != nullptr) {
    // Its client has a thread, and no process of several threads is forked.
    meeting->Disconnect();
  }
  Launcher launcher(std::move(job), &signals);
  const Status started = launcher.Start();
  const ErrorOr<ExitCode> result = started ? ErrorOr<ExitCode>(launcher.Watch()) : started.error();
  PutEndOnRecord(launcher.job(), result);
  return result;
}

auto LaunchLocal(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main) -> ErrorOr<ExitCode> {
  return LaunchProcesses(plan, options, rank_main, nullptr);
}

auto LaunchHost(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main, Meeting& meeting)
    -> ErrorOr<ExitCode> {
  return LaunchProcesses(plan, options, rank_main, &meeting);
}

auto LaunchRank(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main, Meeting& meeting)
    -> ErrorOr<ExitCode> {
  const SignalScope signals;
  ASSIGN_OR_RETURN(const Job job,
                   PrepareJob(plan, ControlBlock::Members::Processes, options, rank_main, &signals, &meeting));
  CatchStopSignals(job.control->stop_flag());
  const int64_t rank = meeting.place().process;
  const HostWatch watch(*job.control, {.network = meeting.network(),
                                       .host = meeting.place().host(),
                                       .speaks_for_host = meeting.is_first_of_host(),
                                       .watches_processes = true,
                                       .after_grace = [&job, rank] { LeaveAtOnce(job, rank); },
                                       .grace = options.grace,
                                       .timeout = options.timeout});
  const Status kept = KeepLease(job);
  if (!kept) {
    job.control->MarkFailed(rank, kept.error());
  }
  const ErrorOr<ExitCode> result = kept ? ErrorOr<ExitCode>(RunOneRank(job, rank, 0)) : kept.error();
  PutEndOnRecord(job, result);
  IgnoreStopSignals();
  return result;
}

auto LaunchThreads(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main) -> ErrorOr<ExitCode> {
  ASSIGN_OR_RETURN(const Job job,
                   PrepareJob(plan, ControlBlock::Members::Threads, options, rank_main, nullptr, nullptr));
  RETURN_IF_ERROR(KeepLease(job));
  const Interval ranks = job.control->ranks();
  std::vector<ExitCode> codes(static_cast<size_t>(ranks.size()), ExitCode::Ok);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < codes.size(); ++i) {
    threads.emplace_back([&, i] { codes[i] = RunOneRank(job, ranks.begin + static_cast<int64_t>(i), 0); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ExitCode first = ExitCode::Ok;
  for (const ExitCode code : codes) {
    first = first == ExitCode::Ok ? code : first;
  }
  const auto failure = job.control->FirstFailure();
  const ErrorOr<ExitCode> result = failure ? failure->code : first;
  PutEndOnRecord(job, result);
  return result;
}

}  // namespace shardc
