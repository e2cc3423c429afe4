#include "runtime/net/connections.h"

#include <linux/tcp.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>
#include <string_view>

namespace shardc {

/// c10d's client connects to IPv4 addresses by sockets of IPv6, "::ffff:10.0.0.1", which the server knows as 10.0.0.1.
static auto Unmapped(const SocketAddress& address) -> SocketAddress {
  const auto& mapped = *reinterpret_cast<const sockaddr_in6*>(&address.bytes);
  if (address.family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&mapped.sin6_addr)) {
    return address;
  }
  SocketAddress plain{.bytes = {}, .size = sizeof(sockaddr_in)};
  auto& ipv4 = *reinterpret_cast<sockaddr_in*>(&plain.bytes);
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = mapped.sin6_port;
  std::memcpy(&ipv4.sin_addr, mapped.sin6_addr.s6_addr + 12, sizeof ipv4.sin_addr);
  return plain;
}

static auto BytesReceived(int socket) -> uint64_t {
  tcp_info info{};
  socklen_t size = sizeof info;
  const bool is_known = getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
                        size >= offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
  return is_known ? info.tcpi_bytes_received : 0;
}

auto OpenFiles::Connections() -> std::vector<Connection> {
  std::vector<Connection> connections;
  if (!is_known()) {
    return connections;
  }
  rewinddir(files_.get());
  while (const dirent* file = readdir(files_.get())) {
    const std::string_view name = file->d_name;
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    Connection connection{.own = {.bytes = {}, .size = sizeof(sockaddr_storage)},
                          .peer = {.bytes = {}, .size = sizeof(sockaddr_storage)}};
    if (getpeername(number, connection.peer.data(), &connection.peer.size) == 0 &&
        getsockname(number, connection.own.data(), &connection.own.size) == 0 &&
        (connection.peer.family() == AF_INET || connection.peer.family() == AF_INET6)) {
      connections.push_back({Unmapped(connection.own), Unmapped(connection.peer), BytesReceived(number)});
    }
  }
  return connections;
}

}  // namespace shardc
