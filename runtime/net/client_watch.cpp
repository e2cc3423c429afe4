#include "runtime/net/client_watch.h"

#include <algorithm>
#include <utility>

#include "compiler/base/waited_time.h"

namespace shardc {

auto ClientWatch::Look(const std::map<std::string, uint64_t>& received, Clock::time_point now) -> void {
  const auto gap = WaitedTime::Counted(now - looked_);
  looked_ = now;
  std::map<std::string, Client> clients;
  for (const auto& [address, bytes] : received) {
    const auto before = clients_.find(address);
    const bool has_spoken = before == clients_.end() || before->second.received != bytes;
    clients[address] = {.received = bytes, .silence = has_spoken ? Clock::duration{} : before->second.silence + gap};
  }
  clients_ = std::move(clients);
}

auto ClientWatch::HaveSpokenWithin(Clock::duration time) const -> bool {
  return std::ranges::any_of(clients_, [&](const auto& client) { return client.second.silence < time; });
}

}  // namespace shardc
