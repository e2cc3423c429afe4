// What happens to a launch of several processes while they still meet: a process is killed, told to stop, wrong about
// who it is, or not alone with its number. All of them end within seconds, and each says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <sstream>

#include "tests/hosts/meeting_job.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Returns true if a signal to stop would not end the process by itself. Source: proc(5), SigBlk and SigCgt of
/// /proc/pid/status.
auto HoldsBackSigterm(pid_t pid) -> bool {
  std::istringstream status(ReadText(fmt::format("/proc/{}/status", pid)));
  uint64_t held = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk:") || line.starts_with("SigCgt:")) {
      held |= std::stoull(line.substr(std::strlen("SigBlk:")), nullptr, 16);
    }
  }
  return (held >> (SIGTERM - 1) & 1U) != 0;
}

TEST(Meeting, KilledProcessEndsLaunch) {
  const Training training({"mesh.dp=4"});
  // All at once, as it takes seconds until somebody says that it waits.
  std::vector<MeetingJob> jobs;
  for (size_t victim = 0; victim < 3; ++victim) {
    jobs.emplace_back(4, 2);
    for (const int64_t rank : {0, 1, 2}) {
      jobs.back().Start(training.RunCommand(fmt::format("run{}", victim)), rank);
    }
  }
  for (size_t victim = 0; victim < jobs.size(); ++victim) {
    Process& first = jobs[victim].at(0);
    ASSERT_TRUE(first.Await([&] { return first.err().find("waiting for ") != std::string::npos; })) << first.err();
    EXPECT_THAT(first.err(), HasSubstr("waiting for 1 of 2 hosts (host 1): process 3 of 4 has not come for "));
    EXPECT_THAT(jobs[victim].at(1).err() + jobs[victim].at(2).err(), testing::Not(HasSubstr("waiting for")));
  }
  for (size_t victim = 0; victim < jobs.size(); ++victim) {
    jobs[victim].at(victim).Kill(SIGKILL);
  }
  for (size_t victim = 0; victim < jobs.size(); ++victim) {
    jobs[victim].ExpectAllEnd(6, fmt::format("process {} (", victim), victim);
  }
}

TEST(Meeting, StoppedProcessIsNamed) {
  const Training training({"mesh.dp=2"});
  constexpr double Timeout = 2;
  std::vector<std::string> command = training.RunCommand();
  command.insert(command.end(), {"--timeout", fmt::format("{}", Timeout)});
  for (const int64_t victim : {0, 1}) {
    MeetingJob job(2, 1);
    Process& stopped = job.Start(command, victim);
    // The store is its child. Process 1 holds signals back before it looks for the store.
    ASSERT_TRUE(stopped.Await([&] {
      return victim == 0 ? StoreOf(stopped).has_value() : HoldsBackSigterm(stopped.pid());
    })) << stopped.err();
    stopped.Kill(SIGSTOP);
    const Outcome other = job.Start(command, 1 - victim).Wait(LongestEnd);
    EXPECT_EQ(other.status, 6) << other.err;
    EXPECT_LT(other.waited.value, Timeout + 5 + LoadAllowance);
    EXPECT_THAT(other.err, HasSubstr(fmt::format("process {} of 2 ", victim)));
    stopped.Kill(SIGKILL);
    EXPECT_EQ(stopped.Wait(LongestEnd).status, 128 + SIGKILL);
    EXPECT_TRUE(stopped.AwaitAllGone()) << "the store ends too";
  }
}

/// Process 0 waits for the other one, is suspended for longer than it would wait, and goes on to wait.
TEST(Meeting, AProcessThatIsSuspendedWaitsOn) {
  const Training training({"mesh.dp=2", "train.steps=2"});
  constexpr double Timeout = IsSanitized ? 30 : 4;
  std::vector<std::string> command = training.RunCommand();
  command.insert(command.end(), {"--timeout", fmt::format("{}", Timeout)});
  MeetingJob job(2, 1);
  Process& first = job.Start(command, 0);
  ASSERT_TRUE(first.Await([&] { return StoreOf(first).has_value(); })) << first.err();
  Sleep(300);
  first.KillGroup(SIGSTOP);
  Sleep(static_cast<int>(1000 * (Timeout + 2)));
  first.KillGroup(SIGCONT);
  job.Start(command, 1);
  job.ExpectAllEnd(0, "");
}

// The process that started it waits for its word.
TEST(Meeting, AStoreThatIsStoppedWhenItBeginsEndsTheLaunch) {
  const Training training({"mesh.dp=2"});
  constexpr double Timeout = 2;
  std::vector<std::string> command = training.RunCommand();
  command.insert(command.end(), {"--timeout", fmt::format("{}", Timeout)});
  MeetingJob job(2, 1);
  Process& first = job.Start(command, 0);
  std::optional<pid_t> store;
  // Before it can have said anything, but for a machine that is slow at the wrong moment.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!store && std::chrono::steady_clock::now() < end) {
    store = StoreOf(first);
  }
  ASSERT_TRUE(store) << first.err();
  kill(*store, SIGSTOP);
  const Outcome outcome = first.Wait({Timeout + 5 + LoadAllowance});
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(outcome.err,
              testing::ContainsRegex("its process, [0-9]+, has said nothing for 4 s|did not answer (for|within) "));
  EXPECT_TRUE(outcome.all_gone) << "the store is killed";
}

/// Makes this process one of a user who has no processes yet, with so many at most, and who may open every file.
auto BecomeAnotherUser(rlim_t most_processes) -> bool {
  constexpr uid_t Unused = 64123;
  constexpr uint32_t OpensAll = (1U << CAP_DAC_OVERRIDE) | (1U << CAP_DAC_READ_SEARCH);
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct kept[2]{{OpensAll, OpensAll, OpensAll}, {0, 0, 0}};
  const rlimit few{most_processes, most_processes};
  return setrlimit(RLIMIT_NPROC, &few) == 0 && prctl(PR_SET_KEEPCAPS, 1) == 0 &&
         setresuid(Unused, Unused, Unused) == 0 && syscall(SYS_capset, &header, kept) == 0 &&
         prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0) == 0 &&
         prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0) == 0;
}

// Threads count as processes. The limit does not hold for root.
TEST(Meeting, ALimitOfProcessesThatIsTooLowIsRefused) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to become another user who has no processes yet";
  }
  const Training training({"mesh.dp=2", "train.steps=1"});
  for (const rlim_t most : {3U, 10U}) {
    const auto as_another_user = [most] {
      if (!BecomeAnotherUser(most)) {
        _exit(126);
      }
    };
    MeetingJob job(2, 2);
    std::vector<std::string> command = training.RunCommand(fmt::format("run{}", most));
    command.insert(command.end(), {"--timeout", "5"});
    for (const int64_t rank : {0, 1}) {
      job.Start(command, rank, {}, as_another_user);
    }
    std::string errors;
    for (const size_t i : {0U, 1U}) {
      const Outcome outcome = job.at(i).Wait(LongestEnd);
      EXPECT_EQ(outcome.status, 6) << outcome.err;
      errors += outcome.err;
    }
    EXPECT_THAT(errors, testing::ContainsRegex(
                            "no more threads; raise the limit of processes|Resource temporarily unavailable"));
  }
}

// Connections are open files.
TEST(Meeting, ALimitOfOpenFilesThatIsTooLowIsRefused) {
  const Training training({"mesh.dp=2"});
  const auto with_few_files = [] {
    const rlimit few{30, 30};
    setrlimit(RLIMIT_NOFILE, &few);
  };
  const std::vector<std::vector<std::string>> commands{
      training.RunCommand(), {SHARDC_BINARY_DIR "/shardc", "doctor", "--run-dir", training / "run"}};
  for (const auto& command : commands) {
    for (const int64_t low : {0, 1}) {
      MeetingJob job(2, 1);
      for (const int64_t rank : {0, 1}) {
        job.Start(command, rank, {}, rank == low ? with_few_files : std::function<void()>());
      }
      const Outcome first = job.at(0).Wait(LongestEnd);
      EXPECT_EQ(first.status, 6) << first.err;
      EXPECT_THAT(first.err,
                  HasSubstr("a process may have 30 open files here, and one of a launch of 2 processes needs"));
      EXPECT_EQ(first.err.find("process 1 (") != std::string::npos, low == 1) << first.err;
      EXPECT_EQ(job.at(1).Wait(LongestEnd).status, 6);
    }
  }
}

TEST(Meeting, AHostThatLooksForProcess0OnItselfIsToldSo) {
  const Training training({"mesh.dp=2"});
  std::vector<std::string> command = training.RunCommand();
  command.insert(command.end(), {"--timeout", "1"});
  MeetingJob job(2, 1);
  job.Start(command, 1, {"MASTER_ADDR=localhost"});
  job.ExpectAllEnd(6, "nobody listens there; MASTER_ADDR is localhost, by which each host means itself: set it to ");
}

TEST(Meeting, ASignalToAnyProcessStopsAllWithNothingToSave) {
  const Training training({"mesh.dp=3"});
  std::vector<MeetingJob> jobs;
  const std::vector<int> signals{SIGTERM, SIGHUP, SIGINT, SIGUSR1};
  for (size_t i = 0; i < signals.size(); ++i) {
    jobs.emplace_back(3, 1);
    for (const int64_t rank : {0, 1}) {
      jobs.back().Start(training.RunCommand(fmt::format("run{}", i)), rank);
    }
  }
  for (size_t i = 0; i < signals.size(); ++i) {
    for (const size_t process : {0U, 1U}) {
      Process& waiting = jobs[i].at(process);
      ASSERT_TRUE(waiting.Await([&] { return HoldsBackSigterm(waiting.pid()); })) << waiting.err();
    }
    jobs[i].at(i % 2).Kill(signals[i]);
    // A second one makes no difference.
    jobs[i].at(i % 2).Kill(SIGTERM);
  }
  for (MeetingJob& job : jobs) {
    job.ExpectAllEnd(75, "stopped by a signal before the ranks began, with nothing to save");
  }
}

TEST(Meeting, AProcessWithWrongVariablesTellsTheOthers) {
  const Training training({"mesh.dp=2"});
  for (const int64_t wrong : {0, 1}) {
    MeetingJob job(2, 1);
    job.Start(training.RunCommand(), 1 - wrong);
    job.Start(training.RunCommand(), wrong, {"LOCAL_RANK="});
    job.ExpectAllEnd(6, "LOCAL_RANK is not: set it");
  }
}

TEST(Meeting, TwoProcessesOfOneNumber) {
  const Training training({"mesh.dp=3"});
  for (const int64_t twice : {1, 0}) {
    MeetingJob job(3, 1);
    for (const int64_t rank : {int64_t{0}, int64_t{1}, twice}) {
      job.Start(training.RunCommand(), rank);
    }
    job.ExpectAllEnd(6, fmt::format("two processes say RANK={} (", twice));
  }
}

TEST(Meeting, ASecondLaunchAtThePortOfOneThatRunsIsRefused) {
  const Training training({"mesh.dp=2", "train.steps=1000000", "train.eval_every=0", "checkpoint.every=0"});
  const auto start = [&](MeetingJob& job, const std::string& run, const std::vector<std::string>& more) {
    job.Start(training.RunCommand(run), 0, more);
    job.Start(training.RunCommand(run), 1, more);
  };
  MeetingJob first(2, 1);
  start(first, "run", {});
  ASSERT_TRUE(first.at(0).Await([&] { return ReadMetrics(training / "run").last_step() >= 2; })) << first.at(0).err();
  MeetingJob second(2, 1);
  start(second, "other", {fmt::format("MASTER_PORT={}", first.port())});
  second.ExpectAllEnd(6, "there is the store of a launch that is under way");
  // Neither a process with wrong variables nor one that is told to stop speaks for the launch that runs there.
  MeetingJob wrong(2, 1);
  wrong.Start(training.RunCommand("other"), 1, {fmt::format("MASTER_PORT={}", first.port()), "LOCAL_RANK="});
  wrong.ExpectAllEnd(6, "LOCAL_RANK is not: set it");
  MeetingJob stopped(2, 1);
  stopped.Start(training.RunCommand("other"), 1, {fmt::format("MASTER_PORT={}", first.port())});
  ASSERT_TRUE(stopped.at(0).Await([&] { return HoldsBackSigterm(stopped.at(0).pid()); }));
  stopped.at(0).Kill(SIGTERM);
  stopped.ExpectAllEnd(75, "stopped by a signal before the ranks began");
  const auto step = ReadMetrics(training / "run").last_step();
  EXPECT_TRUE(first.at(0).Await([&] { return ReadMetrics(training / "run").last_step() >= step + 10; }));
  EXPECT_TRUE(first.at(0).is_running());
  EXPECT_TRUE(first.at(1).is_running());
}

TEST(Meeting, OthersAreWaitedForAsLongAsTheOptionSays) {
  const Training training({"mesh.dp=2"});
  std::vector<std::string> command = training.RunCommand();
  command.insert(command.end(), {"--timeout", "1.5"});
  MeetingJob job(2, 1);
  job.Start(command, 0);
  job.ExpectAllEnd(6, "process 1 of 2 (host 1) has not come within 1.5 s");
}

TEST(Meeting, AnInterfaceThatIsNotThereIsRefusedFirst) {
  const Training training({"mesh.dp=2"});
  MeetingJob job(2, 1);
  job.Start(training.RunCommand(), 0);
  job.Start(training.RunCommand(), 1, {"GLOO_SOCKET_IFNAME=nowhere0"});
  for (const size_t i : {0U, 1U}) {
    EXPECT_EQ(job.at(i).Wait(LongestEnd).status, 6) << job.at(i).err();
  }
  EXPECT_THAT(job.at(0).err(), AllOf(HasSubstr("process 1 ("), HasSubstr("GLOO_SOCKET_IFNAME=nowhere0: none of"),
                                     testing::ContainsRegex("those that are: .*lo")));
}

TEST(Meeting, AnotherCommandIsRefusedAtOnce) {
  const Training training;
  for (const bool is_first : {true, false}) {
    MeetingJob job(2, 1);
    job.Start(training.RunCommand(), is_first ? 0 : 1);
    job.Start(training.Command("doctor"), is_first ? 1 : 0);
    job.ExpectAllEnd(6, is_first ? "was started by `shardc doctor`, and process 0 by `shardc run`"
                                 : "was started by `shardc run`, and process 0 by `shardc doctor`");
  }
}

// A secret makes names of its own for what a launch keeps in its store.
TEST(Meeting, WhoDoesNotKnowTheTokenIsNotOfTheLaunch) {
  const Training training({"mesh.dp=2", "train.steps=3"});
  MeetingJob alike(2, 1);
  alike.Start(training.RunCommand(), 0, {"SHARDC_JOB_TOKEN=secret"});
  alike.Start(training.RunCommand(), 1, {"SHARDC_JOB_TOKEN=secret"});
  alike.ExpectAllEnd(0, "");
  std::vector<std::string> command = training.RunCommand("other");
  command.insert(command.end(), {"--timeout", "2"});
  MeetingJob other(2, 1);
  other.Start(command, 0, {"SHARDC_JOB_TOKEN=secret"});
  other.Start(command, 1, {"SHARDC_JOB_TOKEN=guess"});
  other.ExpectAllEnd(
      6, "if it did start, its SHARDC_JOB_TOKEN, launch name or restart count differs from ours (a token, no name, 0)");
  EXPECT_THAT(other.at(0).err(), HasSubstr("process 1 of 2 (host 1) has not come within 2 s"));
  EXPECT_THAT(other.at(1).err(), HasSubstr("process 0 of 2 has not come to the store at 127.0.0.1:"));
}

}  // namespace
}  // namespace shardc
