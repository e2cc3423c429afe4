// Hosts of emulated GPUs, played by one machine: their ranks are processes, which exchange by the double of NCCL. A run
// has the bits of one in shared memory, and ends in time if something fails.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "compiler/base/stopwatch.h"
#include "runtime/core/runner.h"
#include "runtime/device/family.h"
#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"
#include "tests/emulated/feature.h"
#include "tests/support/emulated/cuda.h"
#include "tests/support/nccl_double.h"

namespace shardc {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

/// Called by a rank before it has its device.
using Prepare = void (*)(NcclDouble& nccl, int64_t rank);

auto NothingHappens(NcclDouble&, int64_t) -> void {}

/// Call of each rank of the launch that this process makes.
Prepare prepare_rank = NothingHappens;

/// Registers the emulated family, with that call.
auto UsePreparedRanks() -> void {
  UseEmulatedCuda();
  static FamilyParts parts = PartsOf(DeviceFamily::Cuda);
  static const auto make_device = parts.make_device;
  parts.make_device = [](const Plan& plan, const DevicePlace& place) {
    prepare_rank(TheNcclDouble(), place.rank);
    return make_device(plan, place);
  };
  SetParts(DeviceFamily::Cuda, &parts);
}

struct HostsRun {
  /// As a shell shows it.
  int status = 0;
  /// Text of stdout and stderr.
  std::string text;
  Seconds waited;
};

/// Trains as shardc-run does, in a process of its own: by processes on hosts that it plays, or on this one.
auto TrainOnHosts(const Plan& plan, const std::string& run_dir, Prepare prepare = NothingHappens) -> HostsRun {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  const std::string text = run_dir + ".txt";
  const Stopwatch watch;
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    const int file = open(text.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    prepare_rank = prepare;
    UsePreparedRanks();
    const LaunchOptions options{.run_dir = run_dir, .timeout = Seconds{20}};
    const auto launch = plan.run.comm == Comm::Shm ? LaunchLocal : LaunchPlayedHosts;
    const auto code = launch(plan, options, RunRank);
    if (!code) {
      std::printf("error: %s\n", code.error().message.c_str());
    }
    std::fflush(nullptr);
    _exit(static_cast<int>(code ? *code : code.error().code));
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .text = ReadText(text),
          .waited = watch.Elapsed()};
}

/// Returns the newest checkpoint without its manifest, which names the plan.
auto StateIn(const std::string& run_dir) -> std::map<std::string, std::string> {
  std::map<std::string, std::string> files = NewestCheckpointOf(run_dir);
  std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".safetensors"); });
  return files;
}

auto WithComm(Sets sets, const std::string& comm) -> Sets {
  sets.push_back("run.comm=" + comm);
  return OnGpu(sets);
}

TEST(EmulatedHosts, HaveTheBitsOfOne) {
  const SmallTraining training;
  const std::vector<Sets> meshes{
      {"mesh.hosts=2", "mesh.dp=2", "batch.micro=1"},
      {"mesh.hosts=2", "mesh.dp=4", "precision.compute=bf16", "precision.reduce=bf16"},
      {"mesh.hosts=2", "mesh.replicate=2", "mesh.tp=2"},
  };
  for (size_t i = 0; i < meshes.size(); ++i) {
    SCOPED_TRACE(testing::PrintToString(meshes[i]));
    const auto run_dir = [&](const std::string& comm) { return training / fmt::format("{}-{}", comm, i); };
    for (const std::string comm : {"shm", "nccl", "nccl-flat"}) {
      const HostsRun run = TrainOnHosts(training.Compile(WithComm(meshes[i], comm)), run_dir(comm));
      ASSERT_EQ(run.status, 0) << run.text;
      EXPECT_THAT(run.text, HasSubstr("sent by rank 0 as planned"));
      ASSERT_NO_FATAL_FAILURE(ExpectSameSteps(ReadMetrics(run_dir("shm")), ReadMetrics(run_dir(comm))));
      EXPECT_EQ(ReadMetrics(run_dir(comm)).evals, ReadMetrics(run_dir("shm")).evals);
      EXPECT_FALSE(StateIn(run_dir(comm)).empty());
      EXPECT_TRUE(StateIn(run_dir(comm)) == StateIn(run_dir("shm"))) << comm;
      std::printf("%s over %s: %.1f s\n", testing::PrintToString(meshes[i]).c_str(), comm.c_str(), run.waited.value);
    }
  }
}

TEST(EmulatedHosts, LeaveSumsToTheLibrary) {
  const SmallTraining training;
  // Three hosts: a ring adds their terms in an order that differs by slot.
  const std::vector<Sets> meshes{{"mesh.hosts=3", "mesh.dp=6", "batch.global=12"},
                                 {"mesh.hosts=3", "mesh.dp=3", "batch.global=12", "precision.reduce=bf16"},
                                 {"mesh.hosts=3", "mesh.replicate=3", "mesh.tp=2", "batch.global=12"}};
  for (size_t i = 0; i < meshes.size(); ++i) {
    SCOPED_TRACE(testing::PrintToString(meshes[i]));
    const auto run_dir = [&](const std::string& name) { return training / fmt::format("{}-{}", name, i); };
    const Plan plan = training.Compile(WithComm(meshes[i], "nccl-ring"));
    for (const char* name : {"ring", "again"}) {
      const HostsRun run = TrainOnHosts(plan, run_dir(name));
      ASSERT_EQ(run.status, 0) << run.text;
      EXPECT_THAT(run.text, HasSubstr("sent by rank 0 as planned"));
    }
    ExpectSameRun(run_dir("ring"), run_dir("again"));
    ASSERT_EQ(TrainOnHosts(training.Compile(WithComm(meshes[i], "shm")), run_dir("shm")).status, 0);
    const auto expected = ReadMetrics(run_dir("shm")).steps;
    const auto found = ReadMetrics(run_dir("ring")).steps;
    ASSERT_EQ(found.size(), expected.size());
    for (size_t step = 0; step < found.size(); ++step) {
      EXPECT_NEAR(found[step].loss, expected[step].loss, 1e-6 * expected[step].loss);
    }
  }
}

TEST(EmulatedHosts, SkewChangesNoBits) {
  const SmallTraining training;
  const Plan plan = training.Compile(WithComm({"mesh.hosts=2", "mesh.dp=4"}, "nccl"));
  ASSERT_EQ(TrainOnHosts(plan, training / "even").status, 0);
  const HostsRun run = TrainOnHosts(plan, training / "skewed", [](NcclDouble& nccl, int64_t rank) {
    nccl.switches.longest_delay_ms = rank == 2 ? 10 : 1;
  });
  ASSERT_EQ(run.status, 0) << run.text;
  ExpectSameRun(training / "even", training / "skewed");
}

constexpr Seconds Longest{15};
const Sets Endless{"mesh.hosts=2", "mesh.dp=4", "train.steps=1000000", "train.eval_every=0"};

class EmulatedHostFailure : public testing::Test {
 protected:
  /// Expects that all processes end in time, with an error of each host that names the rank and says `what`.
  auto ExpectEndOf(int64_t rank, const std::string& what, Prepare prepare) -> void {
    const HostsRun run = TrainOnHosts(training_.Compile(WithComm(Endless, "nccl")), training_ / what, prepare);
    EXPECT_EQ(run.status, static_cast<int>(ExitCode::Environment)) << run.text;
    EXPECT_LT(run.waited, Longest);
    EXPECT_THAT(run.text, ContainsRegex(fmt::format("error: rank {} \\([^)]+\\)[^\n]*{}", rank, what)));
    // Of no other rank.
    for (int64_t other = 0; other < 4; ++other) {
      if (other != rank) {
        EXPECT_THAT(run.text, testing::Not(HasSubstr(fmt::format("error: rank {} (", other))));
      }
    }
  }

  SmallTraining training_;
};

TEST_F(EmulatedHostFailure, NamesRankWhoseCallFails) {
  ExpectEndOf(3, "NCCL: version broke",
              [](NcclDouble& nccl, int64_t rank) { nccl.switches.fails_at = rank == 3 ? 0 : -1; });
  ExpectEndOf(1, "NCCL: init broke",
              [](NcclDouble& nccl, int64_t rank) { nccl.switches.fails_at = rank == 1 ? 2 : -1; });
  ExpectEndOf(2, "NCCL: (all_gather|send|receive|begin_group|end_group) broke",
              [](NcclDouble& nccl, int64_t rank) { nccl.switches.fails_at = rank == 2 ? 40 : -1; });
}

TEST_F(EmulatedHostFailure, NamesRankWhoseNetworkFails) {
  ExpectEndOf(1, "unhandled system error",
              [](NcclDouble& nccl, int64_t rank) { nccl.switches.breaks_at = rank == 1 ? 20 : -1; });
}

TEST_F(EmulatedHostFailure, EndsWhateverHangs) {
  ExpectEndOf(0, "NCCL: (all_gather|send|receive|begin_group|end_group) broke", [](NcclDouble& nccl, int64_t rank) {
    nccl.switches.fails_at = rank == 0 ? 40 : -1;
    nccl.switches.abort_hangs = true;
  });
}

TEST_F(EmulatedHostFailure, NamesRankThatIsKilled) {
  ExpectEndOf(3, "was killed by signal 9 \\(SIGKILL\\)", [](NcclDouble&, int64_t rank) {
    if (rank == 3) {
      std::thread([] {
        std::this_thread::sleep_for(std::chrono::seconds(2));
        kill(getpid(), SIGKILL);
      }).detach();
    }
  });
}

}  // namespace
}  // namespace shardc
