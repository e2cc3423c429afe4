// A rank that dies, stands still, or is told to stop, in a launch over several hosts: all processes of all hosts end,
// in time, and say which rank it was and where it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "tests/hosts/job.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

constexpr Seconds Longest{15};
const Sets Endless{"mesh.dp=4", "train.steps=1000000", "train.eval_every=0", "checkpoint.every=0"};

/// The errors that the processes of one host told, of so many per host. Each failure is told once.
auto ErrorOfHost(const std::vector<Outcome>& outcomes, size_t host, size_t processes) -> std::string {
  const auto first = outcomes.begin() + static_cast<ptrdiff_t>(host * processes);
  return OnlyErrorIn(ErrorsOf({first, first + static_cast<ptrdiff_t>(processes)}));
}

auto AwaitSteps(Job& job, const std::string& run_dir, int64_t steps) -> void {
  ASSERT_TRUE(job.at(0).Await([&] { return ReadMetrics(run_dir).last_step() >= steps; })) << job.at(0).err();
}

/// The server of the store, a child of process 0.
auto StoreOf(const Job& job) -> pid_t {
  const auto store = StoreOf(job.at(0));
  EXPECT_TRUE(store) << "process 0 has no store";
  return store.value_or(0);
}

TEST(HostFailures, AKilledProcessIsNamedOnAllHosts) {
  const Training training(Endless);
  for (const size_t victim : {0U, 1U, 2U, 3U}) {
    const std::string run = fmt::format("run{}", victim);
    Job job({.hosts = 2, .processes = 2}, {training.RunCommand(run)});
    AwaitSteps(job, training / run, 3);
    job.at(victim).Kill(SIGKILL);
    const auto outcomes = job.Wait();
    for (size_t i = 0; i < outcomes.size(); ++i) {
      EXPECT_EQ(outcomes[i].status, i == victim ? 128 + SIGKILL : 6) << i << ": " << outcomes[i].err;
      EXPECT_LT(outcomes[i].waited, Longest);
      EXPECT_TRUE(outcomes[i].all_gone) << i;
    }
    for (const size_t host : {0U, 1U}) {
      EXPECT_THAT(ErrorOfHost(outcomes, host, 2),
                  // The second form is that of the store's server, if it is faster than the ranks.
                  ContainsRegex(fmt::format("error: (rank {0} \\([^)]+\\) is gone, last seen at op [0-9]+ of step "
                                            "[0-9]+ \\([a-z_]+ (of layer [01] )?in section [a-z]+[;)]"
                                            "|process {0} \\([^)]+\\) is gone)",
                                            victim)));
    }
  }
}

TEST(HostFailures, AKilledRankOfALauncherIsNamedOnAllHosts) {
  const Training training(Endless);
  Job job({.hosts = 2, .processes = 1}, {training.RunCommand()});
  AwaitSteps(job, training / "run", 3);
  const auto children = job.at(1).Children();
  ASSERT_EQ(children.size(), 2U);
  kill(children.back(), SIGKILL);
  const auto outcomes = job.Wait();
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.status, 6) << outcome.err;
    EXPECT_LT(outcome.waited, Longest);
    EXPECT_TRUE(outcome.all_gone);
    EXPECT_THAT(OnlyErrorIn(outcome.err),
                ContainsRegex("error: rank 3 \\([^)]+\\) was killed by signal 9 \\(SIGKILL\\), last seen at op"));
  }
}

// Its own host hears it from the rank, and the other hosts hear what it said.
TEST(HostFailures, TheReasonOfARankIsToldOncePerHost) {
  for (const size_t processes : {1U, 2U}) {
    const Training training(Endless);
    Job job({.hosts = 2, .processes = static_cast<int64_t>(processes)}, {training.RunCommand()});
    AwaitSteps(job, training / "run", 3);
    std::filesystem::rename(training / "run", training / "moved");
    const auto outcomes = job.Wait();
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.status, 6) << outcome.err;
      EXPECT_LT(outcome.waited, Longest);
    }
    const std::string reason = fmt::format(": the run directory {} is gone", training / "run");
    EXPECT_THAT(ErrorOfHost(outcomes, 0, processes), ContainsRegex("error: rank 0 \\([^)]+\\)" + reason));
    EXPECT_THAT(ErrorOfHost(outcomes, 1, processes),
                ContainsRegex("error: rank 0 \\([^)]+\\) failed with exit code 6, last seen at op .*" + reason));
  }
}

TEST(HostFailures, TheReasonOfARankIsToldOncePerPlayedHost) {
  for (const int64_t hosts : {1, 2}) {
    const Training training(Endless);
    Process process(training.RunCommand("run", {fmt::format("mesh.hosts={}", hosts)}));
    ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= 3; })) << process.err();
    std::filesystem::rename(training / "run", training / "moved");
    const Outcome outcome = process.Wait();
    EXPECT_EQ(outcome.status, 6) << outcome.err;
    EXPECT_EQ(std::ssize(ErrorLinesIn(outcome.err)), hosts) << outcome.err;
    for (const std::string& line : ErrorLinesIn(outcome.err)) {
      EXPECT_THAT(line, AllOf(StartsWith("error: rank 0"),
                              HasSubstr(fmt::format(": the run directory {} is gone", training / "run"))));
    }
  }
}

TEST(HostFailures, AHostThatIsGoneIsNamed) {
  const Training training(Endless);
  Job job({.hosts = 2, .processes = 2}, {training.RunCommand()});
  AwaitSteps(job, training / "run", 3);
  job.at(2).Kill(SIGKILL);
  job.at(3).Kill(SIGKILL);
  const auto outcomes = job.Wait();
  for (const size_t i : {0U, 1U}) {
    EXPECT_EQ(outcomes[i].status, 6) << outcomes[i].err;
    EXPECT_LT(outcomes[i].waited, Longest);
  }
  EXPECT_THAT(ErrorOfHost(outcomes, 0, 2), ContainsRegex("rank [23] |no sign of life from host 1"));
}

/// All other processes end, the store among them, 5 s after `--timeout` at the latest. The stopped one is ended by the
/// launcher of its host, if that forked it.
TEST(HostFailures, StoppedRankIsNamed) {
  const Training training(Endless);
  constexpr double Timeout = 3;
  for (const int64_t processes : {2, 1}) {
    for (const size_t host : {0U, 1U}) {
      const std::string run = fmt::format("run{}{}", processes, host);
      std::vector<std::string> command = training.RunCommand(run);
      command.insert(command.end(), {"--timeout", fmt::format("{}", Timeout)});
      Job job({.hosts = 2, .processes = processes}, {command});
      AwaitSteps(job, training / run, 3);
      const pid_t store = StoreOf(job);
      // Ranks 1 and 3: a process of their own, or the last child of a launcher.
      const size_t victim = host * 2 + 1;
      const size_t apart = processes == 2 ? victim : job.processes().size();
      const pid_t stopped = processes == 2 ? job.at(victim).pid() : job.at(host).Children().back();
      kill(stopped, SIGSTOP);
      auto outcomes = job.Wait({apart});
      for (size_t i = 0; i < outcomes.size(); ++i) {
        if (i != apart) {
          EXPECT_EQ(outcomes[i].status, 6) << i << ": " << outcomes[i].err;
          // Its launcher waits for it.
          const double grace = processes == 1 && i == host ? 4 : 0;
          EXPECT_LT(outcomes[i].waited.value, Timeout + 5 + grace + LoadAllowance);
        }
      }
      if (processes == 2) {
        EXPECT_TRUE(job.at(victim).is_running());
        job.at(victim).Kill(SIGKILL);
        outcomes[victim] = job.at(victim).Wait();
      }
      for (const size_t of : {0U, 1U}) {
        EXPECT_THAT(ErrorOfHost(outcomes, of, static_cast<size_t>(processes)),
                    HasSubstr(fmt::format("rank {}", victim)));
      }
      EXPECT_TRUE(AwaitTrue([&] { return kill(store, 0) != 0; }, {LoadAllowance}));
    }
  }
}

/// The launcher of all ranks, or the one of played hosts, which no signal tells.
TEST(HostFailures, KilledLauncherEndsRanks) {
  const Training training(Endless);
  for (const int64_t hosts : {1, 2}) {
    const std::string run = fmt::format("run{}", hosts);
    Process process(training.RunCommand(run, {fmt::format("mesh.hosts={}", hosts)}));
    ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / run).last_step() >= 3; })) << process.err();
    process.Kill(SIGKILL);
    EXPECT_EQ(process.Wait().status, 128 + SIGKILL);
    EXPECT_TRUE(AwaitTrue([&] { return process.AwaitAllGone(); }, Longest)) << process.err();
  }
}

/// As by a scheduler that needs the hosts for a while: longer than any rank would wait.
TEST(HostFailures, AJobThatIsSuspendedGoesOn) {
  const Training training(Endless);
  constexpr double Timeout = IsSanitized ? 30 : 4;
  for (const int64_t processes : {2, 1}) {
    const std::string run = fmt::format("run{}", processes);
    std::vector<std::string> command = training.RunCommand(run);
    command.insert(command.end(), {"--timeout", fmt::format("{}", Timeout)});
    Job job({.hosts = 2, .processes = processes}, {command});
    AwaitSteps(job, training / run, 3);
    for (int i = 0; i < 2; ++i) {
      for (const auto& process : job.processes()) {
        process->KillGroup(SIGSTOP);
      }
      Sleep(static_cast<int>(1000 * (Timeout + 2)));
      for (const auto& process : job.processes()) {
        process->KillGroup(SIGCONT);
      }
      const int64_t step = ReadMetrics(training / run).last_step();
      AwaitSteps(job, training / run, step + 2);
    }
    job.at(0).Kill(SIGTERM);
    for (const Outcome& outcome : job.Wait()) {
      EXPECT_EQ(outcome.status, 75) << outcome.err;
    }
  }
}

// Without it nothing could be saved.
TEST(HostFailures, AStoreThatIsGoneEndsTheJob) {
  const Training training(Endless);
  for (const int64_t processes : {2, 1}) {
    const std::string run = fmt::format("run{}", processes);
    Job job({.hosts = 2, .processes = processes}, {training.RunCommand(run)});
    AwaitSteps(job, training / run, 3);
    kill(StoreOf(job), SIGKILL);
    const auto outcomes = job.Wait();
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.status, 6) << outcome.err;
      EXPECT_LT(outcome.waited, Longest);
      EXPECT_TRUE(outcome.all_gone);
    }
    for (size_t host = 0; host < 2; ++host) {
      EXPECT_THAT(ErrorOfHost(outcomes, host, static_cast<size_t>(processes)),
                  ContainsRegex("error: the store of the job, at 127.0.0.1:[0-9]+ on [^ ]+, is gone: its "
                                "process has ended"));
    }
  }
}

TEST(HostFailures, AStoreThatIsSilentEndsTheJobAfterTheTimeout) {
  const Training training(Endless);
  constexpr double Timeout = 4;
  std::vector<std::string> command = training.RunCommand();
  command.insert(command.end(), {"--timeout", fmt::format("{}", Timeout)});
  Job job({.hosts = 2, .processes = 2}, {command});
  AwaitSteps(job, training / "run", 3);
  kill(StoreOf(job), SIGSTOP);
  const auto outcomes = job.Wait();
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.status, 6) << outcome.err;
    EXPECT_TRUE(outcome.all_gone) << "the store, too";
    EXPECT_LT(outcome.waited.value, Timeout + 5 + LoadAllowance);
  }
  for (const size_t host : {0U, 1U}) {
    EXPECT_THAT(outcomes[host * 2].err + outcomes[host * 2 + 1].err, HasSubstr("has not answered for "));
  }
}

TEST(HostFailures, ASignalToAnyRankSavesOnceAndStopsAll) {
  const Training training(Endless);
  for (const size_t victim : {0U, 3U}) {
    const std::string run = fmt::format("run{}", victim);
    Job job({.hosts = 2, .processes = 2}, {training.RunCommand(run)});
    AwaitSteps(job, training / run, 3);
    // A later one does not change the exit code.
    job.at(victim).KillUntilItEnds(SIGTERM);
    for (const Outcome& outcome : job.Wait()) {
      EXPECT_EQ(outcome.status, 75) << outcome.err;
      EXPECT_TRUE(outcome.all_gone);
      EXPECT_THAT(outcome.err, testing::Not(HasSubstr("before the time")));
    }
    EXPECT_THAT(job.at(0).err(), HasSubstr("stopped as asked"));
    EXPECT_EQ(CheckpointsOf(training / run).size(), 1U);
    EXPECT_TRUE(UnfinishedSavesOf(training / run).empty());
  }
}

// With the store of the last launch still there, and at the same port.
TEST(HostFailures, TheNextLaunchContinues) {
  const Training training({"mesh.dp=2", "train.steps=60", "train.eval_every=0", "checkpoint.every=5"});
  const uint16_t port = FreePort();
  const auto start = [&](std::vector<std::unique_ptr<Process>>& processes) {
    for (const char* rank : {"0", "1"}) {
      processes.push_back(std::make_unique<Process>(
          training.RunCommand("run", SlowSteps()),
          ProcessOptions{.environment = {"MASTER_ADDR=127.0.0.1", fmt::format("MASTER_PORT={}", port),
                                         fmt::format("RANK={}", rank), "WORLD_SIZE=2", "LOCAL_RANK=0",
                                         "LOCAL_WORLD_SIZE=1"}}));
    }
  };
  std::vector<std::unique_ptr<Process>> first;
  start(first);
  ASSERT_TRUE(first[0]->Await([&] { return ReadMetrics(training / "run").last_step() >= 12; })) << first[0]->err();
  first[0]->Kill(SIGKILL);
  std::vector<std::unique_ptr<Process>> second;
  Sleep(300);
  start(second);
  EXPECT_EQ(first[1]->Wait().status, 6);
  for (const auto& process : second) {
    const Outcome outcome = process->Wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
  EXPECT_THAT(second[0]->err(), HasSubstr("resumed from"));
}

// One rank alone reads it; no rank takes a step.
TEST(HostFailures, DamagedBlockEndsAllHosts) {
  const Training training({"mesh.dp=2", "train.eval_every=0", "checkpoint.every=2"});
  ASSERT_EQ(training.Run("run", {"train.steps=4"}).status, 0);
  const std::string file = training / "run/checkpoints/step-00000004/rank-00001.safetensors";
  std::string text = ReadText(file);
  text.back() = static_cast<char>(text.back() ^ 1);
  WriteText(file, text);
  Job job({.hosts = 2, .processes = 1}, {training.RunCommand("run", {"train.steps=8"})});
  const auto outcomes = job.Wait();
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.status, 5) << outcome.err;
    EXPECT_LT(outcome.waited, Longest);
    EXPECT_TRUE(outcome.all_gone);
    EXPECT_THAT(OnlyErrorIn(outcome.err),
                AllOf(HasSubstr("rank 1"), HasSubstr(file + " is damaged: the digest of bytes [")));
  }
  EXPECT_EQ(ReadMetrics(training / "run").last_step(), 4);
}

}  // namespace
}  // namespace shardc
