// The launchers that are known: which variables each sets, and how one recognises it. Adding a launcher is a row here,
// and a case in IsVisible.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/cluster/variables.h"

namespace shardc {

enum class LauncherKind { Torchrun, ByHand, Kubernetes, OpenMpi, Hydra, Slurm };

/// One row of the table: the names of its variables.
struct LauncherRow {
  LauncherKind kind;
  const char* name;
  /// Set in all of its processes; the launcher is visible by it.
  const char* marker;
  /// Its process on the host is the parent of those that it starts, and stays.
  bool is_parent = false;
  /// Whoever sets the variables, as messages name it.
  const char* subject;
  const char* process;
  const char* num_processes;
  /// Null: one process per host, or (Slurm) read from the list of tasks per host.
  const char* local_process = nullptr;
  const char* local_num_processes = nullptr;
  /// Number of the host, and how many there are; null if the launcher does not say.
  const char* host = nullptr;
  const char* num_hosts = nullptr;
  /// A name of the launch, the same in all of its processes, and what stands in for it if it is not set.
  const char* job = nullptr;
  const char* other_job = nullptr;
  const char* restart = nullptr;
  /// Advice in messages: how to get equally many consecutive processes on each host.
  const char* placement;
  /// Advice in messages: how MASTER_ADDR and MASTER_PORT get to all processes.
  const char* master;
};

/// The variables of one launcher about this process, before it is known whether that launcher started it.
struct FoundLauncher {
  const LauncherRow* launcher;
  int64_t process;
  int64_t num_processes;
};

/// Errors: one of the variables `names` is not set, though the launcher is visible. Names that are null are passed
/// over.
auto RequireAll(const EnvironmentVariables& variables, const LauncherRow& launcher,
                std::initializer_list<const char*> names) -> Status;

/// Returns the launchers that are visible. A launcher comes before those that may have started it.
/// Errors: variables of a launcher are missing or are not numbers, or WORLD_SIZE is set without any launcher.
auto FindLaunchers(const EnvironmentVariables& variables) -> ErrorOr<std::vector<FoundLauncher>>;

/// Returns the first launcher that is visible, whatever its variables hold; a script that sets only WORLD_SIZE counts
/// too. Returns null if none is visible.
auto FirstVisible(const EnvironmentVariables& variables) -> const LauncherRow*;

}  // namespace shardc
