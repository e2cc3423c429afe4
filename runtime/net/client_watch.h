// Which clients of a job's store still talk to its server. A process of a job asks the store something every second or
// two while it waits for others, and while its ranks run. If none of them says anything for much longer, all of them
// are stopped or cut off, or gone with their hosts.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace shardc {

class ClientWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// `received`: how many bytes came from each client that is connected, by its address. The time in which the server
  /// did not run is no silence (WaitedTime).
  auto Look(const std::map<std::string, uint64_t>& received, Clock::time_point now) -> void;

  /// A client is connected that has said something within `time`.
  auto HaveSpokenWithin(Clock::duration time) const -> bool;

 private:
  struct Client {
    uint64_t received = 0;
    Clock::duration silence{};
  };

  std::map<std::string, Client> clients_;
  Clock::time_point looked_ = Clock::now();
};

}  // namespace shardc
