// The connections of this process, as the kernel has them: by these a server tells who is there still.
#pragma once

#include <dirent.h>

#include <cstdint>
#include <memory>
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

/// The open files of this process, of which sockets are some. It is one of them itself, so that a process that may open
/// no more files still sees its connections. One thread at a time.
class OpenFiles {
 public:
  OpenFiles() : files_(opendir("/proc/self/fd"), &closedir) {}

  /// False: the kernel does not tell.
  auto is_known() const -> bool { return files_ != nullptr; }
  /// Those of all sockets over IPv4 and IPv6. Cost: four system calls for each open file.
  auto Connections() -> std::vector<Connection>;

 private:
  std::unique_ptr<DIR, int (*)(DIR*)> files_;
};

}  // namespace shardc
