// The connections of this process, as the kernel has them: by these a server tells who is there still.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/net/address.h"

namespace shardc {

/// Both ends of a socket that is connected.
struct Connection {
  SocketAddress own;
  SocketAddress peer;
  /// From the peer, so far.
  uint64_t bytes_received = 0;
};

/// Those of all sockets of this process over IPv4 and IPv6. Cost: four system calls for each open file.
auto Connections() -> std::vector<Connection>;

}  // namespace shardc
