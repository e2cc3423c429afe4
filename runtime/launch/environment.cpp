#include "runtime/launch/environment.h"

#include <array>
#include <cstdlib>

namespace shardc {

namespace {

/// A launcher, by the variable that holds its number of processes and the one that holds this process's rank.
struct OtherLauncher {
  const char* name;
  const char* size;
  const char* rank;
};

// SLURM_NTASKS tells of the allocation, which a batch script sees too; srun's steps have SLURM_STEP_NUM_TASKS besides.
constexpr std::array Launchers{
    OtherLauncher{"torchrun", "WORLD_SIZE", "RANK"},
    OtherLauncher{"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    OtherLauncher{"Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
    OtherLauncher{"Slurm", "SLURM_NTASKS", "SLURM_PROCID"},
    OtherLauncher{"MPI", "PMI_SIZE", "PMI_RANK"},
};

}  // namespace

auto RefuseOtherLaunchers(const LookUp& look_up) -> Status {
  for (const OtherLauncher& launcher : Launchers) {
    const char* size = look_up(launcher.size);
    const char* rank = look_up(launcher.rank);
    if (size != nullptr && rank != nullptr && std::strtol(size, nullptr, 10) > 1) {
      return Fail(
          ExitCode::Environment,
          "{0}={1} and {2}={3}: {4} started {1} processes, but this program starts all ranks of one host itself; "
          "start it once, with {2} and {0} unset",
          launcher.size, size, launcher.rank, rank, launcher.name);
    }
  }
  return Success{};
}

}  // namespace shardc
