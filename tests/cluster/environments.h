// Environments as launchers make them, two hosts of two processes each unless a name says otherwise, seen by process 3.
// The variables of Slurm, Open MPI and Hydra are those that Slurm 22.05.8, Open MPI 4.1.4 and MPICH 4.0.2 set.
#pragma once

#include <map>
#include <string>

#include "compiler/cluster/place.h"

namespace shardc {

using Environment = std::map<std::string, std::string>;

/// `changes` over `base`; a variable that is changed to nothing is taken out.
inline auto With(Environment base, const Environment& changes) -> Environment {
  for (const auto& [name, value] : changes) {
    base[name] = value;
    if (value.empty()) {
      base.erase(name);
    }
  }
  return base;
}

inline auto LookUpIn(const Environment& environment) -> LookUp {
  return [&environment](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
}

inline const Environment Torchrun{{"RANK", "3"},
                                  {"WORLD_SIZE", "4"},
                                  {"LOCAL_RANK", "1"},
                                  {"LOCAL_WORLD_SIZE", "2"},
                                  {"GROUP_RANK", "1"},
                                  {"GROUP_WORLD_SIZE", "2"},
                                  {"ROLE_RANK", "3"},
                                  {"ROLE_WORLD_SIZE", "4"},
                                  {"MASTER_ADDR", "node0"},
                                  {"MASTER_PORT", "29500"},
                                  {"TORCHELASTIC_RESTART_COUNT", "2"},
                                  {"TORCHELASTIC_MAX_RESTARTS", "3"},
                                  {"TORCHELASTIC_RUN_ID", "night"}};

inline const Environment ByHand{{"RANK", "3"},
                                {"WORLD_SIZE", "4"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "2"},
                                {"MASTER_ADDR", "fd77::1"},
                                {"MASTER_PORT", "29500"}};

inline const Environment Kubernetes{
    {"JOB_COMPLETION_INDEX", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "train-0.train"}, {"MASTER_PORT", "29500"}};

/// `#SBATCH -N2 --ntasks-per-node=2`, the script itself.
inline const Environment BatchScript{
    {"ENVIRONMENT", "BATCH"},          {"SLURM_JOB_ID", "40007"}, {"SLURM_JOB_NODELIST", "node[0-1]"},
    {"SLURM_JOB_NUM_NODES", "2"},      {"SLURM_NNODES", "2"},     {"SLURM_NODEID", "0"},
    {"SLURM_NODELIST", "node[0-1]"},   {"SLURM_NTASKS", "4"},     {"SLURM_NPROCS", "4"},
    {"SLURM_NTASKS_PER_NODE", "2"},    {"SLURM_PROCID", "0"},     {"SLURM_LOCALID", "0"},
    {"SLURM_TASKS_PER_NODE", "2(x2)"}, {"SLURM_GTIDS", "0"}};

/// `srun` in that script.
inline const Environment SlurmStep = With(BatchScript, {{"SLURM_STEP_ID", "0"},
                                                        {"SLURM_STEPID", "0"},
                                                        {"SLURM_STEP_NODELIST", "node[0-1]"},
                                                        {"SLURM_STEP_NUM_NODES", "2"},
                                                        {"SLURM_STEP_NUM_TASKS", "4"},
                                                        {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                                                        {"SLURM_DISTRIBUTION", "block"},
                                                        {"SLURM_LAUNCH_NODE_IPADDR", "10.77.0.2"},
                                                        {"SLURM_PROCID", "3"},
                                                        {"SLURM_LOCALID", "1"},
                                                        {"SLURM_NODEID", "1"},
                                                        {"SLURM_GTIDS", "2,3"}});

/// The shell of `salloc` with LaunchParameters=use_interactive_step: a step of one task.
inline const Environment InteractiveStep = With(BatchScript, {{"ENVIRONMENT", ""},
                                                              {"SLURM_STEP_ID", "4294967290"},
                                                              {"SLURM_STEP_NODELIST", "node0"},
                                                              {"SLURM_STEP_NUM_NODES", "1"},
                                                              {"SLURM_STEP_NUM_TASKS", "1"},
                                                              {"SLURM_STEP_TASKS_PER_NODE", "1"}});

inline const Environment OpenMpi{{"OMPI_COMM_WORLD_RANK", "3"},
                                 {"OMPI_COMM_WORLD_SIZE", "4"},
                                 {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                 {"OMPI_COMM_WORLD_NODE_RANK", "1"},
                                 {"OMPI_MCA_orte_precondition_transports", "8353332235ef660b-1602ce5ad058105e"},
                                 {"OMPI_MCA_rmaps_base_mapping_policy", "ppr:2:node"},
                                 {"PMIX_NAMESPACE", "1562640385"},
                                 {"PMIX_RANK", "3"},
                                 {"MASTER_ADDR", "node0"},
                                 {"MASTER_PORT", "29500"}};

inline const Environment Hydra{{"PMI_RANK", "3"},        {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"},
                               {"MPI_LOCALNRANKS", "2"}, {"PMI_FD", "6"},   {"MASTER_ADDR", "node0"},
                               {"MASTER_PORT", "29500"}};

}  // namespace shardc
