// 1. Which launchers are visible (launchers.h).
// 2. Which of them started this program: the others may only have started its launcher, once per host, or say the same.
// 3. The place that it says, which has to be one of equally many consecutive processes per host.
// 4. Where process 0 is, what the launch is called, and when it ends.

#include "compiler/cluster/place.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <vector>

#include "compiler/base/text/split.h"
#include "compiler/cluster/host_list.h"
#include "compiler/cluster/launchers.h"

namespace shardc {

namespace {

constexpr size_t MaxTextLength = 255;
constexpr const char* TasksPerHost = "SLURM_STEP_TASKS_PER_NODE";

auto Unequal(const LauncherRow& launcher, std::string_view shown) -> Error {
  return Fail(ExitCode::Environment,
              "{} put unequal numbers of processes on hosts ({}), and every host has to have equally many: {}",
              launcher.subject, shown, launcher.placement);
}

/// Reads Slurm's tasks per host: `2(x3)` is 2 tasks on each of three hosts; `2(x3),1` adds a host with 1.
auto ReadTasksPerHost(const EnvironmentVariables& variables, const LauncherRow& launcher) -> ErrorOr<int64_t> {
  RETURN_IF_ERROR(RequireAll(variables, launcher, {TasksPerHost}));
  std::optional<int64_t> tasks;
  bool equal = true;
  for (const std::string_view entry : SplitAt(variables.Text(TasksPerHost), ",")) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
    const std::string_view times = entry.substr(static_cast<size_t>(end - entry.data()));
    const bool well_formed = times.empty() || (times.size() > 3 && times.starts_with("(x") && times.back() == ')' &&
                                               times.find_first_not_of("0123456789", 2) == times.size() - 1);
    FAIL_IF(error != std::errc() || number < 1 || !well_formed, ExitCode::Environment,
            "{}: tasks per host are expected, such as 2(x3); do not set it by hand", variables.Shown(TasksPerHost));
    equal = equal && tasks.value_or(number) == number;
    tasks = number;
  }
  return equal ? ErrorOr<int64_t>(*tasks) : Unequal(launcher, variables.Shown(TasksPerHost));
}

/// Returns the name of the variable that counts the processes of this host.
auto CountOfHost(const LauncherRow& launcher) -> const char* {
  return launcher.kind == LauncherKind::Slurm ? TasksPerHost : launcher.local_num_processes;
}

struct Local {
  int64_t process = 0;
  int64_t num_processes = 1;
};

auto ReadLocal(const EnvironmentVariables& variables, const LauncherRow& launcher) -> ErrorOr<Local> {
  if (launcher.local_process == nullptr) {
    return Local{};
  }
  RETURN_IF_ERROR(RequireAll(variables, launcher, {launcher.local_process, launcher.local_num_processes}));
  ASSIGN_OR_RETURN(const int64_t process, variables.Number(launcher.local_process));
  const bool listed = launcher.local_num_processes == nullptr;
  ASSIGN_OR_RETURN(const int64_t num,
                   listed ? ReadTasksPerHost(variables, launcher) : variables.Number(launcher.local_num_processes));
  FAIL_IF(process >= num, ExitCode::Environment,
          "{} and {}: the processes of a host are numbered from 0 to {}; correct one of the two",
          variables.Shown(launcher.local_process), variables.Shown(CountOfHost(launcher)), num - 1);
  return Local{process, num};
}

/// Returns the variable by which the launcher was asked for an order other than host by host; null if it was not. Every
/// process sees it, even one in the right place.
auto AskedForInterleaving(const EnvironmentVariables& variables, LauncherKind kind, int64_t per_host) -> const char* {
  if (kind == LauncherKind::Slurm) {
    const std::string_view order = variables.Text("SLURM_DISTRIBUTION");
    if (order.starts_with("cyclic")) {
      return "SLURM_DISTRIBUTION";
    }
    if (order.starts_with("plane") && variables.Text("SLURM_DIST_PLANESIZE") != std::to_string(per_host)) {
      return "SLURM_DIST_PLANESIZE";
    }
  }
  if (kind == LauncherKind::OpenMpi && variables.Text("OMPI_MCA_rmaps_base_mapping_policy").starts_with("node")) {
    return "OMPI_MCA_rmaps_base_mapping_policy";
  }
  return nullptr;
}

/// Errors: hosts with unequal numbers of processes, or processes of a host without consecutive numbers, as far as this
/// process can see.
auto CheckPlacement(const EnvironmentVariables& variables, const FoundLauncher& found, const Local& local) -> Status {
  const LauncherRow& launcher = *found.launcher;
  if (launcher.local_process == nullptr) {
    return Success{};
  }
  const std::string counted =
      fmt::format("{}, {}", variables.Shown(CountOfHost(launcher)), variables.Shown(launcher.num_processes));
  if (found.num_processes % local.num_processes != 0) {
    return Unequal(launcher, counted);
  }
  const int64_t num_hosts = found.num_processes / local.num_processes;
  if (launcher.num_hosts != nullptr && variables.Has(launcher.num_hosts)) {
    ASSIGN_OR_RETURN(const int64_t said, variables.Number(launcher.num_hosts));
    if (said != num_hosts) {
      return Unequal(launcher, fmt::format("{}, {}", variables.Shown(launcher.num_hosts), counted));
    }
  }
  std::string seen =
      fmt::format("process {} is number {} of {} on its host", found.process, local.process, local.num_processes);
  int64_t host = found.process / local.num_processes;
  if (launcher.host != nullptr && variables.Has(launcher.host)) {
    ASSIGN_OR_RETURN(host, variables.Number(launcher.host));
    seen += fmt::format(", {}", variables.Shown(launcher.host));
  }
  const char* const asked = num_hosts > 1 && local.num_processes > 1
                                ? AskedForInterleaving(variables, launcher.kind, local.num_processes)
                                : nullptr;
  FAIL_IF(asked != nullptr || found.process != host * local.num_processes + local.process, ExitCode::Environment,
          "{} did not number the processes host by host ({}): {}", launcher.subject,
          asked != nullptr ? variables.Shown(asked) : seen, launcher.placement);
  return Success{};
}

/// Returns true if `outer` started the launcher `inner` once per host, or gives the process the same place.
auto Agree(const EnvironmentVariables& variables, const FoundLauncher& inner, const Local& local,
           const FoundLauncher& outer) -> bool {
  if (outer.process == inner.process && outer.num_processes == inner.num_processes) {
    return true;
  }
  const bool is_mpi = inner.launcher->kind == LauncherKind::OpenMpi || inner.launcher->kind == LauncherKind::Hydra;
  if (is_mpi && outer.launcher->kind == LauncherKind::Slurm) {
    // In a job of Slurm, mpirun starts its daemons by a step of its own, one task per host; its own host may have none.
    return variables.Text("SLURM_STEP_NUM_NODES") == variables.Text("SLURM_STEP_NUM_TASKS");
  }
  return outer.num_processes * local.num_processes == inner.num_processes;
}

auto Conflict(const EnvironmentVariables& variables, const FoundLauncher& first, const FoundLauncher& second) -> Error {
  const auto say = [&](const FoundLauncher& found) {
    return fmt::format("{} says process {} of {} ({}, {})", found.launcher->subject, found.process, found.num_processes,
                       variables.Shown(found.launcher->process), variables.Shown(found.launcher->num_processes));
  };
  return Fail(ExitCode::Environment,
              "two launchers started this program: {}, and {}. Start it by one of them; to start {} by {}, start it "
              "once per host",
              say(first), say(second), first.launcher->subject, second.launcher->subject);
}

auto ReadPort(const EnvironmentVariables& variables, const LauncherRow& launcher) -> ErrorOr<uint16_t> {
  // The store of torchrun itself is on MASTER_PORT.
  const int64_t above = launcher.kind == LauncherKind::Torchrun ? 1 : 0;
  const ErrorOr<int64_t> port = variables.Number("MASTER_PORT");
  FAIL_IF(!port || *port < 1 || *port > std::numeric_limits<uint16_t>::max() - above, ExitCode::Environment,
          "{}: a port from 1 to {} is expected{}", variables.Shown("MASTER_PORT"),
          std::numeric_limits<uint16_t>::max() - above,
          above > 0 ? ", because torchrun uses that port and this program the one above it" : "");
  return static_cast<uint16_t>(*port + above);
}

/// Derives the address of process 0 in a Slurm step, which no variable has: the first host of the step, where task 0
/// runs, and a port made from the numbers of job and step. SLURM_LAUNCH_NODE_IPADDR would be wrong: srun may run on a
/// host without tasks.
auto ReadSlurmMaster(const EnvironmentVariables& variables, const LauncherRow& launcher, LaunchPlace& place) -> Status {
  RETURN_IF_ERROR(RequireAll(variables, launcher, {"SLURM_JOB_ID"}));
  ASSIGN_OR_RETURN(const int64_t job, variables.Number("SLURM_JOB_ID", std::numeric_limits<uint32_t>::max()));
  ASSIGN_OR_RETURN(const int64_t step, variables.Number("SLURM_STEP_ID", std::numeric_limits<uint32_t>::max()));
  place.job = fmt::format("{}.{}", job, step);
  if (!variables.Has("MASTER_ADDR")) {
    RETURN_IF_ERROR(RequireAll(variables, launcher, {"SLURM_STEP_NODELIST"}));
    const ErrorOr<std::vector<std::string>> hosts = ExpandHostList(variables.Text("SLURM_STEP_NODELIST"));
    FAIL_IF(!hosts, ExitCode::Environment, "SLURM_STEP_NODELIST: {}; {}", hosts.error().message, launcher.master);
    place.master_host = hosts->front();
  }
  if (!variables.Has("MASTER_PORT")) {
    // Steps of a job may run side by side; a prime keeps them apart from the next jobs.
    constexpr int64_t FirstPort = 20000;
    constexpr int64_t NumPorts = 20000;
    constexpr int64_t PortsPerStep = 1009;
    place.master_port = static_cast<uint16_t>(FirstPort + (job + step * PortsPerStep) % NumPorts);
  }
  return Success{};
}

auto ReadMaster(const EnvironmentVariables& variables, const LauncherRow& launcher, LaunchPlace& place) -> Status {
  if (launcher.kind == LauncherKind::Slurm) {
    RETURN_IF_ERROR(ReadSlurmMaster(variables, launcher, place));
  }
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    FAIL_IF(!variables.Has(name) && launcher.kind != LauncherKind::Slurm, ExitCode::Environment,
            "{} started process {} of {}, and {} is not set: MASTER_ADDR has to name the host of process 0, and "
            "MASTER_PORT a port that is free there; {}",
            launcher.subject, place.process, place.num_processes, name, launcher.master);
  }
  if (variables.Has("MASTER_ADDR")) {
    const std::string_view host = variables.Text("MASTER_ADDR");
    const auto is_of_a_name = [](char c) { return c > ' ' && c <= '~'; };
    FAIL_IF(host.size() > MaxTextLength || !std::all_of(host.begin(), host.end(), is_of_a_name), ExitCode::Environment,
            "{}: the name or the address of one host is expected", variables.Shown("MASTER_ADDR"));
    place.master_host = host;
    // On one host it does no harm. How many there are is unknown where this process only tells the others of an error.
    FAIL_IF(place.num_hosts() != 1 && IsAnyAddress(place.master_host), ExitCode::Environment,
            "{} stands for all addresses of the host that reads it; set it to the name or the address by which "
            "the other hosts reach that of process 0",
            variables.Shown("MASTER_ADDR"));
  }
  if (variables.Has("MASTER_PORT")) {
    ASSIGN_OR_RETURN(place.master_port, ReadPort(variables, launcher));
  }
  return Success{};
}

auto ReadLaunch(const EnvironmentVariables& variables, const LauncherRow& launcher, LaunchPlace& place) -> Status {
  const char* const name = variables.Has(launcher.job) ? launcher.job : launcher.other_job;
  const std::string_view job = variables.Text(name);
  FAIL_IF(job.size() > MaxTextLength, ExitCode::Environment, "{}: at most {} characters are expected",
          variables.Shown(name), MaxTextLength);
  // Slurm's was put together from two; `none` is what torchrun calls a run that was given no --rdzv-id.
  if (!job.empty() && job != "none") {
    place.job = job;
  }
  if (variables.Has(launcher.restart)) {
    ASSIGN_OR_RETURN(place.restart, variables.Number(launcher.restart));
  }
  return Success{};
}

}  // namespace

auto FindPlace(const LookUp& look_up) -> ErrorOr<std::optional<LaunchPlace>> {
  const EnvironmentVariables variables(look_up);
  ASSIGN_OR_RETURN(const std::vector<FoundLauncher> launchers, FindLaunchers(variables));
  if (launchers.empty()) {
    return std::optional<LaunchPlace>();
  }
  const FoundLauncher& found = launchers.front();
  const bool alone = found.num_processes == 1;
  ASSIGN_OR_RETURN(const Local local, alone ? Local{} : ReadLocal(variables, *found.launcher));
  for (const FoundLauncher& other : launchers) {
    if (other.num_processes > 1 && !Agree(variables, found, local, other)) {
      return Conflict(variables, found, other);
    }
  }
  if (alone) {
    return std::optional<LaunchPlace>();
  }
  RETURN_IF_ERROR(CheckPlacement(variables, found, local));
  LaunchPlace place{.launcher = found.launcher->name,
                    .launcher_is_parent = found.launcher->is_parent,
                    .process = found.process,
                    .num_processes = found.num_processes,
                    .local_process = local.process,
                    .local_num_processes = local.num_processes};
  RETURN_IF_ERROR(ReadLaunch(variables, *found.launcher, place));
  RETURN_IF_ERROR(ReadMaster(variables, *found.launcher, place));
  place.token = variables.Text("SHARDC_JOB_TOKEN");
  ASSIGN_OR_RETURN(place.end_time, FindEndTime(look_up));
  return std::optional<LaunchPlace>(std::move(place));
}

auto FindMeetingPoint(const LookUp& look_up) -> std::optional<LaunchPlace> {
  const EnvironmentVariables variables(look_up);
  const LauncherRow* const launcher = FirstVisible(variables);
  if (launcher == nullptr) {
    return std::nullopt;
  }
  const ErrorOr<int64_t> process = variables.Number(launcher->process);
  LaunchPlace point{.launcher = launcher->name,
                    .launcher_is_parent = launcher->is_parent,
                    .process = process ? *process : -1,
                    .num_processes = 0};
  if (!ReadLaunch(variables, *launcher, point) || !ReadMaster(variables, *launcher, point) ||
      point.master_host.empty()) {
    return std::nullopt;
  }
  point.token = variables.Text("SHARDC_JOB_TOKEN");
  return point;
}

auto FindEndTime(const LookUp& look_up) -> ErrorOr<std::optional<int64_t>> {
  const EnvironmentVariables variables(look_up);
  if (!variables.Has("SLURM_JOB_END_TIME")) {
    return std::optional<int64_t>();
  }
  ASSIGN_OR_RETURN(const int64_t end_time, variables.Number("SLURM_JOB_END_TIME", std::numeric_limits<int64_t>::max()));
  return end_time == 0 ? std::optional<int64_t>() : std::optional<int64_t>(end_time);
}

auto IsAnyAddress(std::string host) -> bool {
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  in_addr ipv4{};
  in6_addr ipv6{};
  return (inet_aton(host.c_str(), &ipv4) != 0 && ipv4.s_addr == INADDR_ANY) ||
         (inet_pton(AF_INET6, host.c_str(), &ipv6) == 1 &&
          (IN6_IS_ADDR_UNSPECIFIED(&ipv6) || (IN6_IS_ADDR_V4MAPPED(&ipv6) && ipv6.s6_addr32[3] == 0)));
}

auto HelpInShell(const LaunchPlace& place) -> std::string {
  return place.launcher == "Slurm"
             ? "; in a shell of `srun --pty`, unset SLURM_STEP_ID, or start the shell by `srun -n1 --pty`"
             : "";
}

}  // namespace shardc
