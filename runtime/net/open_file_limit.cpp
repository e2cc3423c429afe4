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

static auto IsAllowed(int64_t files) -> bool {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(files);
}

auto CanOpenStore() -> bool {
  constexpr int64_t OfStoreAndFewClients = 24;
  return IsAllowed(OfStoreAndFewClients);
}

auto CheckOpenFileLimit(int64_t num_processes) -> Status {
  constexpr int64_t OfItself = 48;
  // To the server of the store each process has three connections at most, and its ranks one each.
  constexpr int64_t OfEachProcess = 4;
  const int64_t needed = OfItself + OfEachProcess * num_processes;
  if (IsAllowed(needed)) {
    return Success{};
  }
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return Fail(ExitCode::Environment,
              "a process may have {} open files here, and one of a launch of {} processes needs up to {}; raise the "
              "limit (ulimit -Hn)",
              limit.rlim_cur, num_processes, needed);
}

}  // namespace shardc
