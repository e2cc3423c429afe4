// Where a launcher has put this process: its number among all processes of the launch, its number on its host, and
// where process 0 can be met. Read from environment variables alone; launchers are rows of a table in the .cpp file.
// Whether the world fits the recipe's mesh, and whether the other processes see the same, is judged by those who start
// the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/cluster/variables.h"

namespace shardc {

struct LaunchPlace {
  /// As messages name it: "torchrun", "Slurm", "Open MPI", "Hydra", "Kubernetes", "RANK and WORLD_SIZE".
  std::string launcher;
  /// The parent of this process is the launcher's, or a script that the launcher started, and is there for as long as
  /// this process runs.
  bool launcher_is_parent = false;
  /// Number of this process among all that were started. Processes of one host have consecutive numbers.
  int64_t process = 0;
  int64_t num_processes = 1;
  /// Among the processes of this host, of which every host has equally many.
  int64_t local_process = 0;
  int64_t local_num_processes = 1;
  /// Address at which process 0 opens the store of the launch: a name or an address of its host, and a port that is
  /// free there.
  std::string master_host;
  uint16_t master_port = 0;
  /// The launcher's name for this launch, the same in all of its processes; empty if it has no name for it.
  std::string job;
  /// How often the launcher has started this launch before.
  int64_t restart = 0;
  /// SHARDC_JOB_TOKEN, by which launches at one address keep apart; empty if it is not set. It keeps no stranger out.
  std::string token;
  /// When the launcher will end the job, in seconds since the epoch, if it says so.
  std::optional<int64_t> end_time;

  auto num_hosts() const -> int64_t { return num_processes / local_num_processes; }
  auto host() const -> int64_t { return process / local_num_processes; }

  friend auto operator==(const LaunchPlace&, const LaunchPlace&) -> bool = default;
};

/// Returns the place of this process in its launch. Returns nothing if no launcher started several processes: then this
/// program is on its host alone, and starts all ranks there. A launcher that started one process does not count (a
/// batch script, an interactive shell of Slurm, `mpirun -n 1`).
/// Errors: ExitCode::Environment. The message says which variables were found, what they lack, and what to set.
auto FindPlace(const LookUp& look_up) -> ErrorOr<std::optional<LaunchPlace>>;

/// Returns true for 0.0.0.0 and ::, however they are written.
auto IsAnyAddress(std::string host) -> bool;

/// Returns what to do if no other process of the launch comes, beginning with "; "; empty if the launcher starts all of
/// them. In a shell of `srun --pty`, nobody starts a program but for the first task.
auto HelpInShell(const LaunchPlace& place) -> std::string;

/// Returns what is known of a launch whose variables FindPlace refuses: the store of the launch, and the number of the
/// process, -1 if it is unknown. Returns nothing if no launcher is visible, or if no variable names the store.
auto FindMeetingPoint(const LookUp& look_up) -> std::optional<LaunchPlace>;

/// Returns when Slurm will end the job that this process is part of, with or without a launcher: SLURM_JOB_END_TIME,
/// seconds since the epoch, which Slurm sets since 23.02. Returns nothing if it is not set, or the job has no end.
auto FindEndTime(const LookUp& look_up) -> ErrorOr<std::optional<int64_t>>;

}  // namespace shardc
