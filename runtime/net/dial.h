// Which address of a server answers.
#pragma once

#include <chrono>

#include "compiler/base/error_or.h"
#include "runtime/net/address.h"

namespace shardc {

/// Tries all addresses of `server`, again and again until `deadline`, and gives the first one to which a connection
/// could be made; the connection is closed again. Errors: why the last attempt did not succeed;
/// ErrorKind::NobodyListens if each address refuses connections: the server's process has ended, or has not begun.
auto Dial(const Endpoint& server, std::chrono::steady_clock::time_point deadline) -> ErrorOr<SocketAddress>;

}  // namespace shardc
