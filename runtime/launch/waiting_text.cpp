#include "runtime/launch/waiting_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardc {

/// The first few, and how many more.
static auto Listed(const std::vector<std::string>& names) -> std::string {
  constexpr size_t MostNamed = 8;
  const size_t named = std::min(names.size(), MostNamed);
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(named), ", "),
                     named < names.size() ? fmt::format(" and {} more", names.size() - named) : "");
}

auto WaitingText(const LaunchPlace& place, const std::vector<int64_t>& missing,
                 const std::vector<std::string>& host_names, Seconds waited) -> std::string {
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
  return fmt::format("waiting for {} of {} hosts ({}): {} {} of {} {} not come for {:.0f} s", hosts.size(),
                     place.num_hosts(), Listed(hosts), processes.size() == 1 ? "process" : "processes",
                     Listed(processes), place.num_processes, processes.size() == 1 ? "has" : "have", waited.value);
}

}  // namespace shardc
