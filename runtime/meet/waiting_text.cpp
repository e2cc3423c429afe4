#include "runtime/meet/waiting_text.h"

#include <fmt/format.h>

#include "compiler/base/text/joined.h"

namespace shardc {

/// Hosts and processes that a message names, at most.
static constexpr size_t MostNamed = 8;

namespace {

/// Hosts and processes that a launch waits for.
struct Missed {
  /// "node1", "node1, node2".
  std::string hosts;
  size_t num_hosts = 0;
  /// "process 3 of 4", "processes 2, 3 of 4".
  std::string processes;
  /// "has not come": to the meeting, or, once all have met, to what they do next.
  std::string has_not_come;
};

}  // namespace

static auto MissedOf(const LaunchPlace& place, const std::vector<int64_t>& missing,
                     const std::vector<std::string>& host_names) -> Missed {
  std::vector<std::string> hosts;
  std::vector<std::string> processes;
  int64_t last_host = -1;
  for (const int64_t process : missing) {
    processes.push_back(std::to_string(process));
    const int64_t host = process / place.local_num_processes;
    if (host != last_host) {
      const auto index = static_cast<size_t>(process);
      hosts.push_back(index < host_names.size() ? host_names[index] : fmt::format("host {}", host));
      last_host = host;
    }
  }
  const bool is_one = processes.size() == 1;
  return {.hosts = Listed(hosts, MostNamed),
          .num_hosts = hosts.size(),
          .processes = fmt::format("{} {} of {}", is_one ? "process" : "processes", Listed(processes, MostNamed),
                                   place.num_processes),
          .has_not_come = fmt::format("{} not {}", is_one ? "has" : "have", host_names.empty() ? "come" : "answered")};
}

auto WaitingText(const LaunchPlace& place, const std::vector<int64_t>& missing,
                 const std::vector<std::string>& host_names, Seconds waited) -> std::string {
  const Missed missed = MissedOf(place, missing, host_names);
  const bool is_alone = host_names.empty() && std::ssize(missing) == place.num_processes - 1;
  return fmt::format("waiting for {} of {} hosts ({}): {} {} for {:.0f} s{}", missed.num_hosts, place.num_hosts(),
                     missed.hosts, missed.processes, missed.has_not_come, waited.value,
                     is_alone ? HelpInShell(place) : "");
}

auto MissingText(const LaunchPlace& place, const std::vector<int64_t>& missing,
                 const std::vector<std::string>& host_names, Seconds waited) -> std::string {
  const Missed missed = MissedOf(place, missing, host_names);
  return fmt::format("{} ({}) {} within {:g} s", missed.processes, missed.hosts, missed.has_not_come, waited.value);
}

}  // namespace shardc
