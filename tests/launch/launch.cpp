// The launcher with small rank functions: outcomes, deaths, signals, locks, refusals.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "compiler/base/process_stat.h"
#include "compiler/checkpoint/lease.h"
#include "runtime/launch/launch.h"

namespace shardc {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

auto PlanOf(const Mesh& mesh) -> Plan {
  Plan plan;
  plan.mesh = mesh;
  plan.run.run_id = "test";
  // The plan has no data to look at.
  plan.run.scan_bytes = 0;
  plan.arena_bytes = {4096, 8192, 4096, 1 << 20, 0};
  return plan;
}

/// Steps of a millisecond until the ranks agree to stop, as the executor's control op would.
auto StepUntilStop(RankContext& context) -> ErrorOr<ExitCode> {
  for (int64_t step = 0;; ++step) {
    context.control->SetPosition(Stream::Compute, {step, SectionKind::Step, 7});
    std::this_thread::sleep_for(milliseconds(1));
    const auto stops = context.control->GatherValues(AxisSet::All(), context.control->StopIsRequested() ? 1 : 0);
    if (!stops) {
      return stops.error();
    }
    if (std::ranges::find(*stops, 1) != stops->end()) {
      return ExitCode::Preempted;
    }
  }
}

struct Outcome {
  /// Exit status as a shell shows it: 128 + n for a signal.
  int status = 0;
  std::string errors;
  double seconds = 0;
};

/// Runs a launcher in a process of its own, as shardc-run is. `disturb` is called with its process id meanwhile.
auto Launch(const Plan& plan, const LaunchOptions& options, const RankMain& rank_main,
            const std::function<void(pid_t)>& disturb = {}) -> Outcome {
  const std::string path = testing::TempDir() + fmt::format("shardc_launch_{}.err", getpid());
  const auto begin = Clock::now();
  std::fflush(nullptr);
  const pid_t pid = fork();
  CHECK(pid >= 0, "fork");
  if (pid == 0) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    dup2(file, STDERR_FILENO);
    const auto result = LaunchLocal(plan, options, rank_main);
    if (!result) {
      dprintf(STDERR_FILENO, "error: %s\n", result.error().message.c_str());
      _exit(static_cast<int>(result.error().code));
    }
    _exit(static_cast<int>(*result));
  }
  if (disturb) {
    disturb(pid);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  Outcome outcome;
  outcome.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  outcome.errors = text.str();
  std::filesystem::remove(path);
  return outcome;
}

/// How many errors were told.
auto NumErrors(const Outcome& outcome) -> int64_t {
  constexpr std::string_view Mark = "error: ";
  int64_t count = 0;
  for (size_t at = 0; (at = outcome.errors.find(Mark, at)) != std::string::npos; at += Mark.size()) {
    ++count;
  }
  return count;
}

/// Words that all processes of a test share.
class SharedWords {
 public:
  SharedWords()
      : words_(static_cast<std::atomic<int>*>(
            mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  SharedWords(const SharedWords&) = delete;
  ~SharedWords() { munmap(words_, 4096); }
  auto operator[](int64_t i) const -> std::atomic<int>& { return words_[i]; }
  auto Await(int64_t i) const -> int {
    while (words_[i].load() == 0) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return words_[i].load();
  }

 private:
  std::atomic<int>* words_;
};

/// Launches two ranks that store their process ids in `words` and step until they stop. `disturb` is called with the id
/// of the launcher once both ranks have stored theirs.
auto DisturbSteppingRanks(const SharedWords& words, const LaunchOptions& options,
                          const std::function<void(pid_t)>& disturb) -> Outcome {
  return Launch(
      PlanOf(Mesh{{1, 2, 1}}), options,
      [&](RankContext& context) -> ErrorOr<ExitCode> {
        words[context.rank].store(getpid());
        return StepUntilStop(context);
      },
      [&](pid_t launcher) {
        words.Await(0);
        words.Await(1);
        disturb(launcher);
      });
}

auto Exists(pid_t pid) -> bool {
  const auto stat = ReadProcessStat(pid);
  return stat && stat->state != 'Z';
}

TEST(Launch, RanksRunWithTheirContextAndAgreeOnTheCode) {
  const RankMain rank_main = [](RankContext& context) -> ErrorOr<ExitCode> {
    const bool right = context.control->rank() == context.rank && context.plan->mesh.num_ranks() == 4 &&
                       context.options.eval_checkpoint == "step-3" && context.options.dry && context.options.json &&
                       context.device->Base(Arena::SharedTransient) != nullptr && !context.control->StopIsRequested();
    auto sum = static_cast<int64_t>(context.rank);
    RETURN_IF_ERROR(context.control->Sum(AxisSet::All(), reinterpret_cast<std::byte*>(&sum), 1, DType::I64));
    return right && sum == 6 ? ExitCode::Preempted : ExitCode::InternalFault;
  };
  const LaunchOptions options{.eval_checkpoint = "step-3", .dry = true, .json = true};
  const Outcome outcome = Launch(PlanOf(Mesh{{1, 2, 2}}), options, rank_main);
  EXPECT_EQ(outcome.status, 75);
  EXPECT_EQ(outcome.errors, "");
  const auto by_threads = LaunchThreads(PlanOf(Mesh{{1, 2, 2}}), options, rank_main);
  ASSERT_TRUE(by_threads.ok()) << by_threads.error().message;
  EXPECT_EQ(*by_threads, ExitCode::Preempted);
}

TEST(Launch, ErrorOfARankIsToldOnceAndSetsTheCode) {
  const RankMain rank_main = [](RankContext& context) -> ErrorOr<ExitCode> {
    context.control->SetPosition(Stream::Compute, {2, SectionKind::Step, 30});
    if (context.rank == 1) {
      std::this_thread::sleep_for(milliseconds(50));
      return Fail(ExitCode::Checkpoint, "the manifest is damaged");
    }
    return StepUntilStop(context);
  };
  const Outcome outcome = Launch(PlanOf(Mesh{{1, 3, 1}}), {}, rank_main);
  EXPECT_EQ(outcome.status, 5);
  EXPECT_EQ(outcome.errors, "error: rank 1: the manifest is damaged\n");
  EXPECT_LT(outcome.seconds, 2);
  const auto by_threads = LaunchThreads(PlanOf(Mesh{{1, 3, 1}}), {}, rank_main);
  ASSERT_TRUE(by_threads.ok()) << by_threads.error().message;
  EXPECT_EQ(*by_threads, ExitCode::Checkpoint);
}

TEST(Launch, ErrorThatAllRanksAgreeOnIsToldOnce) {
  const Outcome outcome = Launch(PlanOf(Mesh{{1, 3, 1}}), {}, [](RankContext& context) -> ErrorOr<ExitCode> {
    RETURN_IF_ERROR(context.control->Barrier(AxisSet::All()));
    return Fail(ExitCode::Checkpoint, "rank 2: the manifest is damaged");
  });
  EXPECT_EQ(outcome.status, 5);
  EXPECT_EQ(NumErrors(outcome), 1) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("the manifest is damaged"));
}

TEST(Launch, KilledRankIsNamedOnce) {
  for (const bool in_collective : {false, true}) {
    const SharedWords words;
    const Outcome outcome = Launch(
        PlanOf(Mesh{{1, 3, 1}}), {},
        [&](RankContext& context) -> ErrorOr<ExitCode> {
          words[context.rank].store(getpid());
          if (context.rank == 1 && !in_collective) {
            context.control->SetPosition(Stream::Compute, {12, SectionKind::Step, 415});
            while (true) {
              pause();
            }
          }
          if (context.rank == 0 && in_collective) {
            // The others wait for this one, asleep in the barrier.
            words.Await(3);
          }
          return StepUntilStop(context);
        },
        [&](pid_t) {
          words.Await(0);
          words.Await(2);
          const pid_t victim = words.Await(1);
          std::this_thread::sleep_for(milliseconds(100));
          kill(victim, SIGKILL);
          std::this_thread::sleep_for(milliseconds(20));
          words[3].store(1);
        });
    EXPECT_EQ(outcome.status, 6);
    EXPECT_THAT(outcome.errors, StartsWith("error: rank 1 was killed by signal 9 (SIGKILL), last seen at op"));
    EXPECT_EQ(NumErrors(outcome), 1) << outcome.errors;
    if (!in_collective) {
      EXPECT_THAT(outcome.errors, HasSubstr("last seen at op 415 of step 12"));
    }
    EXPECT_LT(outcome.seconds, 2);
  }
}

TEST(Launch, OpOfAKilledRankIsNamed) {
  Plan plan = PlanOf(Mesh{{1, 2, 1}});
  plan.overrides = {"model.vocab=7"};
  plan.section(SectionKind::Save).ops.resize(2, Op{.body = op::SaveCommit{}});
  Op& op = plan.section(SectionKind::Save).ops.back();
  struct Case {
    int32_t layer;
    Origin origin;
    std::string place;
  };
  for (const auto& [layer, origin, place] :
       {Case{3, {12, "model.ffn"}, "save_commit of layer 3 in section save; from recipe line 12, model.ffn"},
        Case{-1, {0, "model.vocab"}, "save_commit in section save; from --set model.vocab=7"},
        Case{-1, {}, "save_commit in section save"}}) {
    op.layer = layer;
    op.origin = origin;
    const Outcome outcome = Launch(plan, {}, [](RankContext& context) -> ErrorOr<ExitCode> {
      context.control->SetPosition(Stream::Compute, {12, SectionKind::Save, 1});
      if (context.rank == 1) {
        kill(getpid(), SIGKILL);
      }
      RETURN_IF_ERROR(context.control->Barrier(AxisSet::All()));
      return ExitCode::Ok;
    });
    EXPECT_EQ(outcome.status, 6);
    const std::string seen =
        fmt::format("rank 1 was killed by signal 9 (SIGKILL), last seen at op 1 of step 12 ({})", place);
    EXPECT_THAT(outcome.errors, StartsWith("error: " + seen));
    EXPECT_EQ(NumErrors(outcome), 1) << outcome.errors;
  }
}

TEST(Launch, RankThatDoesNotNoticeIsEnded) {
  const Outcome outcome =
      Launch(PlanOf(Mesh{{1, 2, 1}}), {.grace = Seconds{0.3}}, [](RankContext& context) -> ErrorOr<ExitCode> {
        if (context.rank == 1) {
          return Fail(ExitCode::Diverged, "over");
        }
        while (true) {
          pause();
        }
      });
  EXPECT_EQ(outcome.status, 7);
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("rank 0 has not ended 0.3 s after the failure and is ended"),
                                    Not(HasSubstr("signal 9"))));
  EXPECT_GT(outcome.seconds, 1.2);
  EXPECT_LT(outcome.seconds, 4);
}

TEST(Launch, ExitWithoutAReportIsAFailure) {
  for (const int code : {0, 1, 9}) {
    const Outcome outcome = Launch(PlanOf(Mesh{{1, 2, 1}}), {}, [code](RankContext& context) -> ErrorOr<ExitCode> {
      if (context.rank == 1) {
        _exit(code);
      }
      return StepUntilStop(context);
    });
    EXPECT_EQ(outcome.status, code == 0 ? 1 : code);
    EXPECT_THAT(outcome.errors, StartsWith("error: rank 1 failed with exit code"));
    EXPECT_EQ(NumErrors(outcome), 1) << outcome.errors;
    EXPECT_LT(outcome.seconds, 2);
  }
}

TEST(Launch, SignalToAnyRankOrTheLauncherStopsAll) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
    for (const int64_t to : {-1, 0, 1}) {
      const SharedWords words;
      const Outcome outcome =
          DisturbSteppingRanks(words, {}, [&](pid_t launcher) { kill(to < 0 ? launcher : words[to].load(), signal); });
      EXPECT_EQ(outcome.status, 75) << "signal " << signal << " to " << to;
      EXPECT_EQ(outcome.errors, "");
      EXPECT_LT(outcome.seconds, 2);
    }
  }
}

TEST(Launch, SecondInterruptEndsAtOnce) {
  const SharedWords words;
  const Outcome outcome = Launch(
      PlanOf(Mesh{{1, 2, 1}}), {},
      [&](RankContext& context) -> ErrorOr<ExitCode> {
        words[context.rank].store(getpid());
        while (true) {
          pause();
        }
      },
      [&](pid_t launcher) {
        words.Await(0);
        words.Await(1);
        kill(launcher, SIGINT);
        std::this_thread::sleep_for(milliseconds(200));
        EXPECT_TRUE(Exists(words[0].load()));
        kill(launcher, SIGINT);
      });
  EXPECT_EQ(outcome.status, 128 + SIGINT);
  EXPECT_LT(outcome.seconds, 2);
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_FALSE(Exists(words[0].load()));
  EXPECT_FALSE(Exists(words[1].load()));
}

TEST(Launch, RanksDieWithTheirLauncher) {
  const SharedWords words;
  const Outcome outcome = DisturbSteppingRanks(words, {}, [](pid_t launcher) { kill(launcher, SIGKILL); });
  EXPECT_EQ(outcome.status, 128 + SIGKILL);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_FALSE(Exists(words[0].load()));
  EXPECT_FALSE(Exists(words[1].load()));
}

TEST(Launch, StoppedRankTimesOutAndIsEnded) {
  const SharedWords words;
  const Outcome outcome = DisturbSteppingRanks(words, {.timeout = Seconds{0.5}, .grace = Seconds{0.2}},
                                               [&](pid_t) { kill(words[1].load(), SIGSTOP); });
  EXPECT_EQ(outcome.status, 6);
  EXPECT_THAT(outcome.errors, StartsWith("error: rank 0: timed out after 0.5 s (axis dp), waiting for rank 1,"));
  EXPECT_EQ(NumErrors(outcome), 1) << outcome.errors;
  EXPECT_LT(outcome.seconds, 4);
  EXPECT_FALSE(Exists(words[1].load()));
}

TEST(Launch, DoesNotFit) {
  Plan plan = PlanOf(Mesh{{1, 2, 1}});
  plan.arena_bytes[0] = int64_t{1} << 50;
  const auto result = LaunchLocal(plan, {}, [](RankContext&) -> ErrorOr<ExitCode> { return ExitCode::Ok; });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ExitCode::DoesNotFit);
  EXPECT_THAT(result.error().message,
              AllOf(HasSubstr("does not fit: 20971"), HasSubstr("(2 ranks x 1024 TiB in arenas, ")));
}

TEST(Launch, MeshForAClusterIsRefused) {
  const auto result =
      LaunchLocal(PlanOf(Mesh{{1, 16384, 1}}), {}, [](RankContext&) -> ErrorOr<ExitCode> { return ExitCode::Ok; });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ExitCode::Environment);
}

TEST(Launch, ThreadsHaveNoNetwork) {
  Mesh mesh{{1, 4, 1}};
  mesh.hosts = 2;
  Plan plan = PlanOf(mesh);
  plan.run.comm = Comm::Gloo;
  const auto result = LaunchThreads(plan, {}, [](RankContext&) -> ErrorOr<ExitCode> { return ExitCode::Ok; });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ExitCode::Environment);
  EXPECT_EQ(result.error().message,
            "the ranks of the plan communicate over a network (run.comm is gloo), and this launch has none");
}

TEST(RunDirectory, SecondLaunchIsRefusedUntilTheFirstHasEnded) {
  const std::string run_dir = testing::TempDir() + fmt::format("shardc_lease_{}/a/b", getpid());
  const RankMain rank_main = [](RankContext&) -> ErrorOr<ExitCode> { return ExitCode::Ok; };
  {
    const auto lease = Lease::Acquire(run_dir, "first", {.what = "run directory", .file_name = "launch.json"});
    ASSERT_TRUE(lease.ok()) << lease.error().message;
    const Outcome refused = Launch(PlanOf(Mesh{{1, 2, 1}}), {.run_dir = run_dir}, rank_main);
    EXPECT_EQ(refused.status, 6);
    EXPECT_THAT(refused.errors, HasSubstr(fmt::format("error: run directory {} is in use by run first", run_dir)));
    EXPECT_THAT(refused.errors, HasSubstr(fmt::format("process {}", getpid())));
    EXPECT_THAT(refused.errors, HasSubstr("`--run-dir`"));
    // Evaluation only reads.
    EXPECT_EQ(Launch(PlanOf(Mesh{{1, 2, 1}}), {.run_dir = run_dir, .eval_checkpoint = "x"}, rank_main).status, 0);
    EXPECT_FALSE(std::filesystem::exists(run_dir + "/attempts"));
  }
  EXPECT_EQ(Launch(PlanOf(Mesh{{1, 2, 1}}), {.run_dir = run_dir}, rank_main).status, 0);
  EXPECT_TRUE(std::filesystem::exists(run_dir + "/attempts/0001"));
  EXPECT_FALSE(std::filesystem::exists(run_dir + "/launch.json"));
  std::filesystem::remove_all(testing::TempDir() + fmt::format("shardc_lease_{}", getpid()));
}

TEST(RunDirectory, ThatCannotBeMade) {
  const Outcome refused = Launch(PlanOf(Mesh{{1, 2, 1}}), {.run_dir = "/proc/none/such"},
                                 [](RankContext&) -> ErrorOr<ExitCode> { return ExitCode::Ok; });
  EXPECT_EQ(refused.status, 6);
  EXPECT_THAT(refused.errors, HasSubstr("/proc/none"));
}

}  // namespace
}  // namespace shardc
