// FindPlace on environments as launchers make them.

#include "compiler/cluster/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string_view>
#include <vector>

#include "tests/cluster/environments.h"

namespace shardc {

/// For the messages of GoogleTest.
static auto PrintTo(const LaunchPlace& place, std::ostream* out) -> void {
  *out << fmt::format("{}: {} of {}, here {} of {}, {}:{}, job {}, restart {}, end {}, {}", place.launcher,
                      place.process, place.num_processes, place.local_process, place.local_num_processes,
                      place.master_host, place.master_port, place.job, place.restart, place.end_time.value_or(-1),
                      place.launcher_is_parent ? "is the parent" : "need not stay");
}

namespace {

using testing::HasSubstr;
using testing::Not;

/// The launcher is that of `environment`, and the place is process 3 of two hosts with two processes each.
auto Third(const char* launcher, const char* master_host, uint16_t master_port) -> LaunchPlace {
  return LaunchPlace{.launcher = launcher,
                     .launcher_is_parent = std::string_view(launcher) != "RANK and WORLD_SIZE",
                     .process = 3,
                     .num_processes = 4,
                     .local_process = 1,
                     .local_num_processes = 2,
                     .master_host = master_host,
                     .master_port = master_port};
}

auto Expect(const Environment& environment, const std::optional<LaunchPlace>& expected) -> void {
  const ErrorOr<std::optional<LaunchPlace>> place = FindPlace(LookUpIn(environment));
  ASSERT_TRUE(place.ok()) << place.error().message;
  EXPECT_EQ(*place, expected);
}

TEST(LaunchPlace, OfEachLauncher) {
  LaunchPlace torchrun = Third("torchrun", "node0", 29501);
  torchrun.job = "night";
  torchrun.restart = 2;
  Expect(Torchrun, torchrun);
  // What torchrun calls a run without --rdzv-id is no name.
  torchrun.job = "";
  Expect(With(Torchrun, {{"TORCHELASTIC_RUN_ID", "none"}}), torchrun);
  EXPECT_EQ(torchrun.host(), 1);
  EXPECT_EQ(torchrun.num_hosts(), 2);

  Expect(ByHand, Third("RANK and WORLD_SIZE", "fd77::1", 29500));

  Expect(Kubernetes, LaunchPlace{.launcher = "Kubernetes",
                                 .process = 1,
                                 .num_processes = 2,
                                 .master_host = "train-0.train",
                                 .master_port = 29500});

  LaunchPlace slurm = Third("Slurm", "node0", 20000 + 40007 % 20000);
  slurm.job = "40007.0";
  Expect(SlurmStep, slurm);

  LaunchPlace open_mpi = Third("Open MPI", "node0", 29500);
  open_mpi.job = "8353332235ef660b-1602ce5ad058105e";
  Expect(OpenMpi, open_mpi);
  open_mpi.job = "1562640385";
  Expect(With(OpenMpi, {{"OMPI_MCA_orte_precondition_transports", ""}}), open_mpi);

  Expect(Hydra, Third("Hydra", "node0", 29500));
}

TEST(LaunchPlace, ALauncherOfOneProcessIsNone) {
  Expect({}, std::nullopt);
  Expect(BatchScript, std::nullopt);
  Expect(InteractiveStep, std::nullopt);
  // Scripts for several processes export these for all of them.
  Expect(With(InteractiveStep, {{"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node0"}}), std::nullopt);
  Expect({{"RANK", "0"}, {"WORLD_SIZE", "1"}}, std::nullopt);
  Expect({{"WORLD_SIZE", "1"}}, std::nullopt);
  Expect({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"MPI_LOCALRANKID", "0"}}, std::nullopt);
  Expect({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}, std::nullopt);
  // `torchrun --standalone --nproc-per-node=1` in a batch script.
  Expect(With(With(BatchScript, Torchrun), {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}), std::nullopt);
  // An indexed job of programs that do not know of each other.
  Expect({{"JOB_COMPLETION_INDEX", "3"}}, std::nullopt);
  // A variable that is set to nothing is not set.
  Expect({{"RANK", ""}, {"PMI_SIZE", ""}, {"SLURM_STEP_ID", ""}}, std::nullopt);
}

TEST(LaunchPlace, SlurmsJobsAndSteps) {
  LaunchPlace place = Third("Slurm", "node0", 20007);
  place.job = "40007.0";
  // Only a job that was requeued has a count, and only Slurm 23.02 and later say when the job ends.
  place.restart = 3;
  place.end_time = 1795456800;
  Expect(With(SlurmStep, {{"SLURM_RESTART_COUNT", "3"}, {"SLURM_JOB_END_TIME", "1795456800"}}), place);
  place.end_time = std::nullopt;
  Expect(With(SlurmStep, {{"SLURM_RESTART_COUNT", "3"}, {"SLURM_JOB_END_TIME", "0"}}), place);
  place.restart = 0;
  // Two steps of a job may run side by side.
  place.job = "40007.2";
  place.master_port = 20000 + 7 + 2 * 1009;
  Expect(With(SlurmStep, {{"SLURM_STEP_ID", "2"}}), place);
  // What the user sets comes first: hosts have several names.
  place.master_host = "10.0.0.1";
  place.master_port = 7777;
  Expect(With(SlurmStep, {{"SLURM_STEP_ID", "2"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "7777"}}), place);
  // The first host of the step, not of the job, and not where srun ran.
  place.job = "40007.0";
  place.master_port = 20007;
  place.master_host = "m5";
  Expect(With(SlurmStep, {{"SLURM_STEP_NODELIST", "m5,node[07-10]"}}), place);
  // `srun --mpi=pmi2` sets these too.
  Expect(With(SlurmStep, {{"SLURM_STEP_NODELIST", "m5,n1"}, {"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"PMI_FD", "13"}}),
         place);
  // The largest numbers that Slurm gives.
  const ErrorOr<std::optional<LaunchPlace>> large =
      FindPlace(LookUpIn(With(SlurmStep, {{"SLURM_JOB_ID", "4294967295"}, {"SLURM_STEP_ID", "4294967295"}})));
  ASSERT_TRUE(large.ok()) << large.error().message;
  EXPECT_GE((*large)->master_port, 20000);
  EXPECT_LT((*large)->master_port, 40000);
}

TEST(LaunchPlace, TasksPerHostOfSlurm) {
  const auto with = [](const char* per_host, const char* nodes, const char* tasks) {
    return With(
        SlurmStep,
        {{"SLURM_STEP_TASKS_PER_NODE", per_host}, {"SLURM_STEP_NUM_NODES", nodes}, {"SLURM_STEP_NUM_TASKS", tasks}});
  };
  for (const Environment& environment : {with("2(x3)", "3", "6"), with("2,2,2", "3", "6"), with("2(x2),2", "3", "6"),
                                         with("2(x16384)", "16384", "32768")}) {
    const ErrorOr<std::optional<LaunchPlace>> place = FindPlace(LookUpIn(environment));
    ASSERT_TRUE(place.ok()) << place.error().message;
    EXPECT_EQ((*place)->local_num_processes, 2);
    EXPECT_EQ((*place)->num_hosts() * 2, (*place)->num_processes);
  }
}

/// The end of the job concerns a program that no launcher started, too.
TEST(LaunchPlace, EndOfTheJob) {
  const ErrorOr<std::optional<int64_t>> end = FindEndTime(LookUpIn({{"SLURM_JOB_END_TIME", "1795456800"}}));
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(*end, 1795456800);
  EXPECT_EQ(*FindEndTime(LookUpIn({})), std::nullopt);
  EXPECT_FALSE(FindEndTime(LookUpIn({{"SLURM_JOB_END_TIME", "noon"}})).ok());
}

TEST(LaunchPlace, ALauncherThatAnotherStartedOncePerHost) {
  LaunchPlace torchrun = Third("torchrun", "node0", 29501);
  torchrun.job = "night";
  torchrun.restart = 2;
  // `srun --ntasks-per-node=1 torchrun --nnodes=2 --nproc-per-node=2`. The groups of torchrun may be in another order.
  const Environment agents = With(SlurmStep, {{"SLURM_STEP_NUM_TASKS", "2"},
                                              {"SLURM_NTASKS", "2"},
                                              {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                              {"SLURM_PROCID", "0"},
                                              {"SLURM_LOCALID", "0"},
                                              {"SLURM_NODEID", "0"}});
  Expect(With(agents, Torchrun), torchrun);
  Expect(With(With(agents, Torchrun), {{"SLURM_PROCID", "1"}, {"SLURM_NODEID", "1"}}), torchrun);
  // `torchrun` in the script itself, on one host.
  Expect(With(BatchScript,
              With(Torchrun,
                   {{"GROUP_WORLD_SIZE", "1"}, {"GROUP_RANK", "0"}, {"LOCAL_RANK", "3"}, {"LOCAL_WORLD_SIZE", "4"}})),
         LaunchPlace{.launcher = "torchrun",
                     .launcher_is_parent = true,
                     .process = 3,
                     .num_processes = 4,
                     .local_process = 3,
                     .local_num_processes = 4,
                     .master_host = "node0",
                     .master_port = 29501,
                     .job = "night",
                     .restart = 2});
  // torchrun in a shell of Slurm on each host, and in pods of an indexed job.
  Expect(With(InteractiveStep, Torchrun), torchrun);
  Expect(With(Kubernetes, Torchrun), torchrun);
  // `mpirun --npernode 1 torchrun --nnodes=2`.
  Expect(With(With(OpenMpi, {{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}}), Torchrun), torchrun);
  // In a job of Slurm, mpirun starts its daemons by a step: Hydra's on all hosts, Open MPI's on all but its own.
  LaunchPlace open_mpi = Third("Open MPI", "node0", 29500);
  open_mpi.job = "8353332235ef660b-1602ce5ad058105e";
  Expect(With(With(agents, {{"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_STEP_NUM_NODES", "3"}}), OpenMpi), open_mpi);
  Expect(With(BatchScript, OpenMpi), open_mpi);
  Expect(With(agents, Hydra), Third("Hydra", "node0", 29500));
  // A script that srun starts, and that says the same in other words.
  Expect(With(SlurmStep, ByHand), Third("RANK and WORLD_SIZE", "fd77::1", 29500));
  // Scripts for srun export these for what they start.
  LaunchPlace slurm = Third("Slurm", "node0", 29500);
  slurm.job = "40007.0";
  Expect(With(SlurmStep, {{"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}}), slurm);
}

/// One process per host cannot be interleaved, whatever the policy says.
TEST(LaunchPlace, OneProcessPerHostMayBeCyclic) {
  LaunchPlace slurm{.launcher = "Slurm",
                    .launcher_is_parent = true,
                    .process = 1,
                    .num_processes = 2,
                    .master_host = "node0",
                    .master_port = 20007,
                    .job = "40007.0"};
  Expect(With(SlurmStep, {{"SLURM_DISTRIBUTION", "cyclic"},
                          {"SLURM_STEP_NUM_TASKS", "2"},
                          {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                          {"SLURM_PROCID", "1"},
                          {"SLURM_LOCALID", "0"}}),
         slurm);
}

/// A variable taken out or spoilt ends in a place or in a message, never in anything else; what is named is what was
/// changed.
TEST(LaunchPlace, AnyVariableMissingOrSpoilt) {
  for (const Environment& whole : {Torchrun, ByHand, Kubernetes, SlurmStep, OpenMpi, Hydra}) {
    for (const auto& [name, value] : whole) {
      for (const char* spoilt : {"", "-1", "x", "4294967296", "2(x99999999999999999999)", "[[", ","}) {
        const ErrorOr<std::optional<LaunchPlace>> place = FindPlace(LookUpIn(With(whole, {{name, spoilt}})));
        if (!place) {
          EXPECT_EQ(place.error().code, ExitCode::Environment);
          // Without an index, a pod's WORLD_SIZE is all that is left.
          const bool gone = name == "JOB_COMPLETION_INDEX" && *spoilt == '\0';
          EXPECT_THAT(place.error().message, HasSubstr(gone ? "WORLD_SIZE" : name)) << spoilt;
        } else if (*place) {
          EXPECT_LT((*place)->process, (*place)->num_processes);
          EXPECT_LT((*place)->local_process, (*place)->local_num_processes);
          EXPECT_NE((*place)->master_host, "");
          EXPECT_NE((*place)->master_port, 0);
        }
      }
    }
  }
}

// Of a process that cannot tell its place.
TEST(LaunchPlace, TheMeetingPointIsKnownWithoutIt) {
  const Environment by_hand{{"RANK", "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};
  ASSERT_FALSE(FindPlace(LookUpIn(by_hand)).ok());
  const auto point = FindMeetingPoint(LookUpIn(by_hand));
  ASSERT_TRUE(point.has_value());
  EXPECT_EQ(point->process, 1);
  EXPECT_EQ(point->master_host, "node0");
  EXPECT_EQ(point->master_port, 29500);
  for (const auto& [changes, process] :
       {std::pair(Environment{{"RANK", "x"}}, -1), std::pair(Environment{{"RANK", ""}, {"WORLD_SIZE", "2"}}, -1),
        std::pair(Environment{{"RANK", "0"}, {"WORLD_SIZE", "x"}}, 0)}) {
    const auto other = FindMeetingPoint(LookUpIn(With(by_hand, changes)));
    ASSERT_TRUE(other.has_value());
    EXPECT_EQ(other->process, process);
  }
  EXPECT_FALSE(FindMeetingPoint(LookUpIn(With(by_hand, {{"MASTER_PORT", ""}}))));
  EXPECT_FALSE(FindMeetingPoint(LookUpIn(With(by_hand, {{"RANK", ""}}))));
}

TEST(LaunchPlace, ATokenIsTakenFromTheEnvironment) {
  const auto place = FindPlace(LookUpIn(With(Torchrun, {{"SHARDC_JOB_TOKEN", "secret"}})));
  ASSERT_TRUE(place.ok() && place->has_value());
  EXPECT_EQ((*place)->token, "secret");
}

}  // namespace
}  // namespace shardc
