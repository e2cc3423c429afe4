// Prints where FindPlace sees this process, one line, or its error; the exit code is that of the error. Launchers of
// tests/cluster/launchers_test.py start it.

#include <cstdio>
#include <cstdlib>

#include "compiler/cluster/place.h"

auto main() -> int {
  using shardc::LaunchPlace;
  const shardc::ErrorOr<std::optional<LaunchPlace>> found =
      shardc::FindPlace([](const char* name) { return std::getenv(name); });
  if (!found) {
    std::printf("error: %s\n", found.error().message.c_str());
    return static_cast<int>(found.error().code);
  }
  if (!*found) {
    std::puts("no launcher");
    return 0;
  }
  const LaunchPlace& place = **found;
  // One write: lines of several processes are not mixed.
  const std::string line =
      fmt::format("{} {}/{} {}/{} {}:{} restart {}\n", place.launcher, place.process, place.num_processes,
                  place.local_process, place.local_num_processes, place.master_host, place.master_port, place.restart);
  std::fwrite(line.data(), 1, line.size(), stdout);
  return 0;
}
