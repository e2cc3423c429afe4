#include "runtime/launch/host_cores.h"

#include <sched.h>

#include <set>
#include <sstream>
#include <string>

#include "compiler/base/text/numbers_and_lines.h"

namespace shardc {

/// Returns the numbers of the cores that this process may run on, as text. Empty if the machine has more cores than a
/// mask has bits.
static auto OwnCores() -> std::string {
  cpu_set_t cores;
  std::string text;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    for (size_t core = 0; core < CPU_SETSIZE; ++core) {
      text += CPU_ISSET(core, &cores) ? fmt::format("{} ", core) : "";
    }
  }
  return text;
}

auto CheckHostCores(const Mesh& mesh, Meeting& meeting) -> Status {
  const LaunchPlace& place = meeting.place();
  if (place.num_hosts() == 1) {
    return Success{};
  }
  ASSIGN_OR_RETURN(const auto texts, meeting.Gather("cores", OwnCores()));
  std::set<std::string> cores;
  bool is_known = true;
  const int64_t first = place.host() * place.local_num_processes;
  for (int64_t process = first; process < first + place.local_num_processes; ++process) {
    const std::string& text = texts[static_cast<size_t>(process)];
    is_known = is_known && !text.empty();
    std::istringstream stream(text);
    for (std::string core; stream >> core;) {
      cores.insert(core);
    }
  }
  const bool has_enough = !is_known || std::ssize(cores) >= mesh.ranks_per_host();
  return meeting.Agree(
      "enough cores",
      has_enough || !meeting.is_first_of_host()
          ? Status(Success{})
          : Fail(ExitCode::Environment,
                 "{} has {} for {}; start fewer ranks per host, or let the processes use more cores (Slurm: "
                 "--cpus-per-task, Open MPI: --bind-to none, by hand: taskset)",
                 meeting.host_name(), Counted(std::ssize(cores), "core"), Counted(mesh.ranks_per_host(), "rank")));
}

}  // namespace shardc
