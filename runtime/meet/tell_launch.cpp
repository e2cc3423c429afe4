#include "runtime/meet/tell_launch.h"

#include <chrono>
#include <thread>

#include "compiler/base/host_and_time.h"
#include "runtime/meet/open_store.h"

namespace shardc {

auto TellLaunch(const LaunchPlace& point, const Error& why, bool has_opened_store) -> void {
  // The others may be late.
  constexpr Seconds LongestWait{10};
  const bool is_first = point.process == 0;
  const Endpoint address{point.master_host, point.master_port};
  const Error told{why.code, fmt::format("a process on {} does not start: {}", HostName(), why.message)};
  std::optional<StoreServer> server;
  if (is_first && !has_opened_store) {
    auto started = StoreServer::Start(address, {.linger = StayForTheLate, .prefix = PrefixOf(point)});
    if (!started) {
      return;
    }
    server = *std::move(started);
  }
  const auto store = JobStore::Connect(address, PrefixOf(point), LongestWait);
  const auto have_met = store ? HaveMet(**store) : ErrorOr<bool>(store.error());
  // All processes of a launch that has met are there: it is another one, which goes on.
  if (have_met && !*have_met && (*store)->Abandon(told) && is_first) {
    std::this_thread::sleep_for(std::chrono::duration<double>(StayForTheLate.value));
  }
}

}  // namespace shardc
