// The variables were read off Slurm 22.05.8, Open MPI 4.1.4 and MPICH 4.0.2 of Debian 12, and in torchrun's source
// (local_elastic_agent.py of PyTorch 2.10); docs/cluster.md has them as a table, and a test compares the two.

#include "compiler/cluster/launchers.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace shardc {

namespace {

// The first row that started several processes is asked; a launcher stands before those that may have started it.
constexpr std::array Launchers{
    LauncherRow{.kind = LauncherKind::Torchrun,
                .name = "torchrun",
                .marker = "TORCHELASTIC_RUN_ID",
                .is_parent = true,
                .subject = "torchrun",
                .process = "RANK",
                .num_processes = "WORLD_SIZE",
                .local_process = "LOCAL_RANK",
                .local_num_processes = "LOCAL_WORLD_SIZE",
                .host = "GROUP_RANK",
                .num_hosts = "GROUP_WORLD_SIZE",
                .job = "TORCHELASTIC_RUN_ID",
                .restart = "TORCHELASTIC_RESTART_COUNT",
                .placement = "give torchrun the same --nproc-per-node on every host, and no --virtual-local-rank",
                .master = "torchrun sets both variables; do not unset them"},
    LauncherRow{.kind = LauncherKind::ByHand,
                .name = "RANK and WORLD_SIZE",
                .marker = "RANK",
                .subject = "the script that sets RANK",
                .process = "RANK",
                .num_processes = "WORLD_SIZE",
                .local_process = "LOCAL_RANK",
                .local_num_processes = "LOCAL_WORLD_SIZE",
                .restart = "SLURM_RESTART_COUNT",
                .placement = "count RANK host by host, with the same LOCAL_WORLD_SIZE on every host",
                .master = "export MASTER_ADDR and MASTER_PORT for every process"},
    LauncherRow{.kind = LauncherKind::Kubernetes,
                .name = "Kubernetes",
                .marker = "JOB_COMPLETION_INDEX",
                .subject = "Kubernetes",
                .process = "JOB_COMPLETION_INDEX",
                .num_processes = "WORLD_SIZE",
                .placement = "use one process per pod",
                .master = "MASTER_ADDR is JOB-0.SERVICE, the name that a headless service gives to the pod of index 0"},
    LauncherRow{.kind = LauncherKind::OpenMpi,
                .name = "Open MPI",
                .marker = "OMPI_COMM_WORLD_RANK",
                .is_parent = true,
                .subject = "Open MPI",
                .process = "OMPI_COMM_WORLD_RANK",
                .num_processes = "OMPI_COMM_WORLD_SIZE",
                .local_process = "OMPI_COMM_WORLD_LOCAL_RANK",
                .local_num_processes = "OMPI_COMM_WORLD_LOCAL_SIZE",
                .job = "OMPI_MCA_orte_precondition_transports",
                .other_job = "PMIX_NAMESPACE",
                .restart = "SLURM_RESTART_COUNT",
                .placement = "use `mpirun --map-by ppr:N:node`, with N processes per host",
                .master = "use `mpirun -x MASTER_ADDR=HOST -x MASTER_PORT=29500`"},
    LauncherRow{.kind = LauncherKind::Hydra,
                .name = "Hydra",
                .marker = "PMI_RANK",
                .is_parent = true,
                .subject = "Hydra",
                .process = "PMI_RANK",
                .num_processes = "PMI_SIZE",
                .local_process = "MPI_LOCALRANKID",
                .local_num_processes = "MPI_LOCALNRANKS",
                .restart = "SLURM_RESTART_COUNT",
                .placement = "use `mpiexec.hydra -ppn N`, with N processes per host",
                .master = "use `mpiexec.hydra -genv MASTER_ADDR HOST -genv MASTER_PORT 29500`"},
    LauncherRow{.kind = LauncherKind::Slurm,
                .name = "Slurm",
                .marker = "SLURM_STEP_ID",
                .is_parent = true,
                .subject = "Slurm",
                .process = "SLURM_PROCID",
                .num_processes = "SLURM_STEP_NUM_TASKS",
                .local_process = "SLURM_LOCALID",
                .host = "SLURM_NODEID",
                .num_hosts = "SLURM_STEP_NUM_NODES",
                .restart = "SLURM_RESTART_COUNT",
                .placement = "use `srun --ntasks-per-node=N --distribution=block`, with N processes per host",
                .master = "export MASTER_ADDR, the name of the host of task 0, before srun"},
};

/// Returns true if variables show that this launcher is there.
auto IsVisible(const EnvironmentVariables& variables, LauncherKind kind) -> bool {
  switch (kind) {
    case LauncherKind::Torchrun: return variables.Has("TORCHELASTIC_RUN_ID");
    case LauncherKind::ByHand: return variables.Has("RANK");
    case LauncherKind::Kubernetes:
      // An indexed job may also be of programs that have nothing to do with each other.
      return variables.Has("JOB_COMPLETION_INDEX") && !variables.Has("RANK") &&
             (variables.Has("WORLD_SIZE") || variables.Has("MASTER_ADDR"));
    case LauncherKind::OpenMpi: return variables.Has("OMPI_COMM_WORLD_RANK") || variables.Has("OMPI_COMM_WORLD_SIZE");
    case LauncherKind::Hydra:
      // `srun --mpi=pmi2` sets PMI_RANK and PMI_SIZE too, and nothing of the host.
      return (variables.Has("PMI_RANK") || variables.Has("PMI_SIZE")) &&
             (variables.Has("MPI_LOCALRANKID") || !variables.Has("SLURM_STEP_ID"));
    case LauncherKind::Slurm:
      // A batch script has SLURM_PROCID=0 and SLURM_NTASKS too, but is not a step; `salloc` has SLURM_NTASKS.
      return variables.Has("SLURM_STEP_ID");
  }
  CHECK(false, "a launcher without a case");
}

auto ReadNumbers(const EnvironmentVariables& variables, const LauncherRow& launcher) -> ErrorOr<FoundLauncher> {
  RETURN_IF_ERROR(RequireAll(variables, launcher, {launcher.process, launcher.num_processes}));
  ASSIGN_OR_RETURN(const int64_t process, variables.Number(launcher.process));
  ASSIGN_OR_RETURN(const int64_t num_processes, variables.Number(launcher.num_processes));
  FAIL_IF(process >= num_processes, ExitCode::Environment,
          "{} and {}: processes are numbered from 0 to {} - 1; correct one of the two",
          variables.Shown(launcher.process), variables.Shown(launcher.num_processes), launcher.num_processes);
  return FoundLauncher{&launcher, process, num_processes};
}

}  // namespace

auto RequireAll(const EnvironmentVariables& variables, const LauncherRow& launcher,
                std::initializer_list<const char*> names) -> Status {
  std::vector<const char*> missing;
  std::copy_if(names.begin(), names.end(), std::back_inserter(missing),
               [&](const char* name) { return name != nullptr && !variables.Has(name); });
  if (missing.empty()) {
    return Success{};
  }
  // MPI's launchers are visible by their number of processes too.
  const char* const witness = variables.Has(launcher.marker) ? launcher.marker : launcher.num_processes;
  const bool one = missing.size() == 1;
  const bool of_host = launcher.kind == LauncherKind::ByHand && missing.front() != launcher.num_processes;
  return Fail(ExitCode::Environment, "{} is set{}{}, but {} {} not: set {}, or unset {}{}", variables.Shown(witness),
              launcher.kind == LauncherKind::ByHand ? "" : ", as by ",
              launcher.kind == LauncherKind::ByHand ? "" : launcher.name, fmt::join(missing, " and "),
              one ? "is" : "are", one ? "it" : "them", witness,
              of_host ? "; one process per host has LOCAL_RANK=0 and LOCAL_WORLD_SIZE=1" : "");
}

auto FindLaunchers(const EnvironmentVariables& variables) -> ErrorOr<std::vector<FoundLauncher>> {
  std::vector<FoundLauncher> all;
  for (const LauncherRow& launcher : Launchers) {
    if (!IsVisible(variables, launcher.kind)) {
      continue;
    }
    ASSIGN_OR_RETURN(const FoundLauncher found, ReadNumbers(variables, launcher));
    all.push_back(found);
  }
  // Scripts for srun and mpirun export WORLD_SIZE too, and their tasks are visible without RANK.
  FAIL_IF(all.empty() && variables.Has("WORLD_SIZE") && variables.Text("WORLD_SIZE") != "1", ExitCode::Environment,
          "{} is set, but RANK is not: set RANK, LOCAL_RANK and LOCAL_WORLD_SIZE for each process, or unset "
          "WORLD_SIZE to start all ranks on this host",
          variables.Shown("WORLD_SIZE"));
  return all;
}

auto FirstVisible(const EnvironmentVariables& variables) -> const LauncherRow* {
  const auto find = [](const auto& condition) -> const LauncherRow* {
    const auto found = std::find_if(Launchers.begin(), Launchers.end(), condition);
    return found == Launchers.end() ? nullptr : &*found;
  };
  const auto* const visible = find([&](const LauncherRow& launcher) { return IsVisible(variables, launcher.kind); });
  if (visible != nullptr || !variables.Has("WORLD_SIZE")) {
    return visible;
  }
  return find([](const LauncherRow& launcher) { return launcher.kind == LauncherKind::ByHand; });
}

}  // namespace shardc
