// FindPlace on environments with which something is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "compiler/cluster/place.h"
#include "tests/cluster/environments.h"

namespace shardc {
namespace {

using testing::HasSubstr;

struct Fault {
  const char* name;
  Environment environment;
  std::vector<const char*> said;
};

auto PrintTo(const Fault& fault, std::ostream* out) -> void { *out << fault.name; }

auto Faults() -> std::vector<Fault> {
  return {
      {"TwoLaunchers",
       With(SlurmStep, With(Torchrun, {{"RANK", "1"}, {"LOCAL_RANK", "1"}, {"GROUP_RANK", "0"}})),
       {"two launchers started this program: torchrun says process 1 of 4 (RANK=1, WORLD_SIZE=4), and Slurm says "
        "process "
        "3 of 4 (SLURM_PROCID=3, SLURM_STEP_NUM_TASKS=4)",
        "start torchrun by Slurm, start it once per host"}},
      {"TorchrunOfOneHostInEachTask",
       With(SlurmStep, With(Torchrun, {{"RANK", "0"}, {"WORLD_SIZE", "1"}})),
       {"torchrun says process 0 of 1", "Slurm says process 3 of 4"}},
      {"MpirunInEachTask",
       With(SlurmStep, With(OpenMpi, {{"OMPI_COMM_WORLD_RANK", "1"}})),
       {"Open MPI says process 1 of 4 (OMPI_COMM_WORLD_RANK=1", "Slurm says process 3 of 4"}},
      {"TwoMpis",
       With(OpenMpi, With(Hydra, {{"PMI_SIZE", "6"}})),
       {"Open MPI says process 3 of 4", "Hydra says process 3 of 6 (PMI_RANK=3, PMI_SIZE=6)"}},
      {"RankWithoutWorldSize", {{"RANK", "0"}}, {"RANK=0 is set, but WORLD_SIZE is not: set it, or unset RANK"}},
      {"WorldSizeWithoutRank",
       {{"WORLD_SIZE", "4"}},
       {"WORLD_SIZE=4 is set, but RANK is not: set RANK, LOCAL_RANK and LOCAL_WORLD_SIZE for each process, or unset "
        "WORLD_SIZE"}},
      {"WorldSizeInABatchScript", With(BatchScript, {{"WORLD_SIZE", "4"}}), {"WORLD_SIZE=4 is set, but RANK is not"}},
      {"NoLocalRank",
       With(ByHand, {{"LOCAL_RANK", ""}, {"LOCAL_WORLD_SIZE", ""}}),
       {"RANK=3 is set, but LOCAL_RANK and LOCAL_WORLD_SIZE are not: set them, or unset RANK; one process per host has "
        "LOCAL_RANK=0 and LOCAL_WORLD_SIZE=1"}},
      {"TorchrunWithoutRank",
       With(Torchrun, {{"RANK", ""}}),
       {"TORCHELASTIC_RUN_ID=night is set, as by torchrun, but RANK is not"}},
      {"TorchrunWithoutLocalSize",
       With(Torchrun, {{"LOCAL_WORLD_SIZE", ""}}),
       {"as by torchrun, but LOCAL_WORLD_SIZE is not"}},
      {"OpenMpiWithoutRank",
       {{"OMPI_COMM_WORLD_SIZE", "4"}},
       {"OMPI_COMM_WORLD_SIZE=4 is set, as by Open MPI, but OMPI_COMM_WORLD_RANK is not: set it, or unset "
        "OMPI_COMM_WORLD_SIZE"}},
      {"OpenMpiWithoutLocal",
       With(OpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", ""}}),
       {"as by Open MPI, but OMPI_COMM_WORLD_LOCAL_SIZE is not"}},
      {"HydraWithoutSize", With(Hydra, {{"PMI_SIZE", ""}}), {"PMI_RANK=3 is set, as by Hydra, but PMI_SIZE is not"}},
      {"HydraWithoutLocal", With(Hydra, {{"MPI_LOCALRANKID", ""}}), {"as by Hydra, but MPI_LOCALRANKID is not"}},
      {"SlurmWithoutProcid",
       With(SlurmStep, {{"SLURM_PROCID", ""}}),
       {"SLURM_STEP_ID=0 is set, as by Slurm, but SLURM_PROCID is not"}},
      {"SlurmWithoutTasksPerNode",
       With(SlurmStep, {{"SLURM_STEP_TASKS_PER_NODE", ""}}),
       {"as by Slurm, but SLURM_STEP_TASKS_PER_NODE is not"}},
      {"SlurmWithoutJob", With(SlurmStep, {{"SLURM_JOB_ID", ""}}), {"as by Slurm, but SLURM_JOB_ID is not"}},
      {"SlurmWithoutNodes",
       With(SlurmStep, {{"SLURM_STEP_NODELIST", ""}}),
       {"as by Slurm, but SLURM_STEP_NODELIST is not"}},
      {"SlurmWithBadNodes",
       With(SlurmStep, {{"SLURM_STEP_NODELIST", "node[3-1]"}}),
       {"SLURM_STEP_NODELIST: `node[3-1]` is no list of hosts", "export MASTER_ADDR"}},
      {"KubernetesWithoutSize",
       With(Kubernetes, {{"WORLD_SIZE", ""}}),
       {"JOB_COMPLETION_INDEX=1 is set, as by Kubernetes, but WORLD_SIZE is not"}},
      {"NoMasterOfKubernetes",
       With(Kubernetes, {{"MASTER_ADDR", ""}}),
       {"Kubernetes started process 1 of 2, and MASTER_ADDR is not set", "JOB-0.SERVICE"}},
      {"NoMasterOfOpenMpi",
       With(OpenMpi, {{"MASTER_ADDR", ""}}),
       {"Open MPI started process 3 of 4, and MASTER_ADDR is not set: MASTER_ADDR has to name the host of process 0",
        "mpirun -x MASTER_ADDR=HOST -x MASTER_PORT=29500"}},
      {"NoPortOfHydra",
       With(Hydra, {{"MASTER_PORT", ""}}),
       {"Hydra started process 3 of 4, and MASTER_PORT is not set", "mpiexec.hydra -genv MASTER_ADDR HOST"}},
      {"NoMasterByHand",
       With(ByHand, {{"MASTER_ADDR", ""}}),
       {"the script that sets RANK started process 3 of 4, and MASTER_ADDR"}},
      {"NoNumber", With(ByHand, {{"RANK", "third"}}), {"RANK=third: a whole number from 0 to 2147483647 is expected"}},
      {"Negative", With(ByHand, {{"RANK", "-1"}}), {"RANK=-1: a whole number"}},
      {"Spaces", With(ByHand, {{"WORLD_SIZE", " 4"}}), {"WORLD_SIZE= 4: a whole number"}},
      {"TooLarge",
       With(ByHand, {{"WORLD_SIZE", "99999999999999999999"}}),
       {"WORLD_SIZE=99999999999999999999: a whole"}},
      {"NotPrintable", With(ByHand, {{"RANK", "\x1b[2J"}}), {"RANK=\\u001b[2J: a whole number"}},
      {"NoRestartCount",
       With(Torchrun, {{"TORCHELASTIC_RESTART_COUNT", "x"}}),
       {"TORCHELASTIC_RESTART_COUNT=x: a whole"}},
      {"NoEndTime",
       With(SlurmStep, {{"SLURM_JOB_END_TIME", "2026-11-23"}}),
       {"SLURM_JOB_END_TIME=2026-11-23: a whole"}},
      {"NoTasks",
       With(SlurmStep, {{"SLURM_STEP_TASKS_PER_NODE", "2(x"}}),
       {"SLURM_STEP_TASKS_PER_NODE=2(x: tasks per host"}},
      {"NoTasks2", With(SlurmStep, {{"SLURM_STEP_TASKS_PER_NODE", "2,,2"}}), {"tasks per host are expected"}},
      {"RankTooLarge",
       With(ByHand, {{"RANK", "4"}}),
       {"RANK=4 and WORLD_SIZE=4: processes are numbered from 0 to WORLD_SIZE - 1"}},
      {"NoProcess",
       With(ByHand, {{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
       {"RANK=0 and WORLD_SIZE=0: processes are numbered"}},
      {"LocalRankTooLarge",
       With(ByHand, {{"LOCAL_RANK", "2"}}),
       {"LOCAL_RANK=2 and LOCAL_WORLD_SIZE=2: the processes of a host are numbered from 0 to 1"}},
      {"LocalIdTooLarge",
       With(SlurmStep, {{"SLURM_LOCALID", "2"}}),
       {"SLURM_LOCALID=2 and SLURM_STEP_TASKS_PER_NODE=2(x2): the processes of a host"}},
      {"NoPort", With(ByHand, {{"MASTER_PORT", "0"}}), {"MASTER_PORT=0: a port from 1 to 65535 is expected"}},
      {"PortTooLarge", With(ByHand, {{"MASTER_PORT", "65536"}}), {"MASTER_PORT=65536: a port"}},
      {"NoPortAbove",
       With(Torchrun, {{"MASTER_PORT", "65535"}}),
       {"MASTER_PORT=65535: a port from 1 to 65534 is expected, because torchrun uses that port"}},
      {"AnyAddress",
       With(ByHand, {{"MASTER_ADDR", "0.0.0.0"}}),
       {"MASTER_ADDR=0.0.0.0 stands for all addresses of the host that reads it; set it to the name or the address"}},
      {"AnyAddressInIpv6",
       With(ByHand, {{"MASTER_ADDR", "::ffff:0.0.0.0"}}),
       {"MASTER_ADDR=::ffff:0.0.0.0 stands for all addresses"}},
      {"AnyAddressOfIpv6", With(ByHand, {{"MASTER_ADDR", "[::0]"}}), {"MASTER_ADDR=[::0] stands for all addresses"}},
      {"NoHost",
       With(ByHand, {{"MASTER_ADDR", "two hosts"}}),
       {"MASTER_ADDR=two hosts: the name or the address of one host"}},
      {"NoHostOfAMegabyte",
       With(ByHand, {{"MASTER_ADDR", std::string(1 << 20, 'x')}}),
       {"...: the name or the address"}},
      {"NoJobOfAMegabyte",
       With(Torchrun, {{"TORCHELASTIC_RUN_ID", std::string(1 << 20, 'x')}}),
       {"...: at most 255 characters"}},
      {"Unequal",
       With(ByHand, {{"WORLD_SIZE", "5"}}),
       {"the script that sets RANK put unequal numbers of processes on hosts (LOCAL_WORLD_SIZE=2, WORLD_SIZE=5), and "
        "every host has "
        "to "
        "have equally many: count RANK host by host"}},
      {"UnequalTasks",
       With(SlurmStep, {{"SLURM_STEP_TASKS_PER_NODE", "3,1"}, {"SLURM_LOCALID", "0"}}),
       {"Slurm put unequal numbers of processes on hosts (SLURM_STEP_TASKS_PER_NODE=3,1)", "srun --ntasks-per-node=N"}},
      {"UnequalGroups",
       With(Torchrun, {{"GROUP_WORLD_SIZE", "3"}}),
       {"torchrun put unequal numbers of processes on hosts (GROUP_WORLD_SIZE=3, LOCAL_WORLD_SIZE=2, WORLD_SIZE=4)",
        "--nproc-per-node"}},
      {"UnequalOfOpenMpi",
       With(OpenMpi, {{"OMPI_COMM_WORLD_SIZE", "5"}}),
       {"Open MPI put unequal numbers of processes on hosts", "mpirun --map-by ppr:N:node"}},
      {"Cyclic",
       With(SlurmStep, {{"SLURM_DISTRIBUTION", "cyclic:block"}}),
       {"Slurm did not number the processes host by host (SLURM_DISTRIBUTION=cyclic:block)", "--distribution=block"}},
      {"Planes",
       With(SlurmStep, {{"SLURM_DISTRIBUTION", "plane"}, {"SLURM_DIST_PLANESIZE", "1"}}),
       {"(SLURM_DIST_PLANESIZE=1)"}},
      // `srun --distribution=arbitrary`: task 2 is the second one of host 0.
      {"OtherHost",
       With(SlurmStep, {{"SLURM_DISTRIBUTION", "arbitrary"}, {"SLURM_NODEID", "0"}}),
       {"Slurm did not number the processes host by host (process 3 is number 1 of 2 on its host, SLURM_NODEID=0)"}},
      // `mpirun --map-by node`: process 1 is the first one of host 1.
      {"ByNode",
       With(OpenMpi, {{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                      {"OMPI_MCA_rmaps_base_mapping_policy", ""}}),
       {"Open MPI did not number the processes host by host (process 1 is number 0 of 2 on its host): use `mpirun "
        "--map-by ppr:N:node`"}},
      // Process 3 is where it should be, and sees by the policy that others are not.
      {"ByNodeSeenByAll",
       With(OpenMpi, {{"OMPI_MCA_rmaps_base_mapping_policy", "node"}}),
       {"(OMPI_MCA_rmaps_base_mapping_policy=node)"}},
      {"VirtualLocalRank",
       With(Torchrun, {{"LOCAL_RANK", "0"}}),
       {"torchrun did not number the processes host by host", "--virtual-local-rank"}},
  };
}

class PlaceFault : public testing::TestWithParam<Fault> {};

TEST_P(PlaceFault, IsNamedWithItsRemedy) {
  const ErrorOr<std::optional<LaunchPlace>> place = FindPlace(LookUpIn(GetParam().environment));
  ASSERT_FALSE(place.ok());
  EXPECT_EQ(place.error().code, ExitCode::Environment);
  for (const char* text : GetParam().said) {
    EXPECT_THAT(place.error().message, HasSubstr(text));
  }
  EXPECT_LT(place.error().message.size(), 500U);
  EXPECT_TRUE(std::all_of(place.error().message.begin(), place.error().message.end(),
                          [](char c) { return c >= ' ' && c <= '~'; }));
}

INSTANTIATE_TEST_SUITE_P(Faults, PlaceFault, testing::ValuesIn(Faults()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace shardc
