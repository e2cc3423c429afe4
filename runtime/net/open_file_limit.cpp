#include "runtime/net/open_file_limit.h"

#include <sys/resource.h>

namespace shardc {

auto RaiseOpenFileLimit() -> void {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

/// Of this process; all, if the kernel does not tell.
static auto MostOpenFiles() -> rlim_t {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

auto CanOpenStore() -> bool {
  constexpr rlim_t OfStoreAndFewClients = 24;
  return MostOpenFiles() >= OfStoreAndFewClients;
}

auto CheckOpenFileLimit(int64_t num_processes) -> Status {
  constexpr int64_t OfItself = 48;
  // To the server of the store each process has three connections at most, and its ranks one each.
  constexpr int64_t OfEachProcess = 4;
  const int64_t needed = OfItself + OfEachProcess * num_processes;
  const rlim_t most = MostOpenFiles();
  return most >= static_cast<rlim_t>(needed)
             ? Status(Success{})
             : Fail(ExitCode::Environment,
                    "a process may have {} open files here, and one of a launch of {} processes needs up to {}; raise "
                    "the limit (ulimit -Hn)",
                    most, num_processes, needed);
}

}  // namespace shardc
