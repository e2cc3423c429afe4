// Names become addresses by the resolver of the system; interfaces are those that getifaddrs tells.
#include "runtime/net/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "compiler/base/text/split.h"

namespace shardc {

static auto WithoutBrackets(const std::string& host) -> std::string {
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

auto Endpoint::Text() const -> std::string {
  const std::string bare = WithoutBrackets(host);
  return bare.find(':') == std::string::npos ? fmt::format("{}:{}", bare, port) : fmt::format("[{}]:{}", bare, port);
}

auto SocketAddress::Host() const -> std::string {
  char text[NI_MAXHOST] = {};
  const int result = getnameinfo(data(), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return result == 0 ? text : fmt::format("an address of family {}", family());
}

auto SocketAddress::Port() const -> uint16_t {
  return family() == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6*>(&bytes)->sin6_port)
                              : ntohs(reinterpret_cast<const sockaddr_in*>(&bytes)->sin_port);
}

OwnedDescriptor::OwnedDescriptor(OwnedDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

auto OwnedDescriptor::operator=(OwnedDescriptor&& other) noexcept -> OwnedDescriptor& {
  if (this != &other) {
    Close();
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

auto OwnedDescriptor::Close() -> void {
  if (number_ >= 0) {
    close(std::exchange(number_, -1));
  }
}

auto Resolve(const Endpoint& endpoint) -> ErrorOr<std::vector<SocketAddress>> {
  const std::string host = WithoutBrackets(endpoint.host);
  // (An empty name would stand for loopback.)
  FAIL_IF(host.empty(), ExitCode::Environment, "the address of the store has no host");
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int result = getaddrinfo(host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (result != 0) {
    const char* reason = result == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(result);
    return Fail(ExitCode::Environment, "{} has no address: {}", host, reason);
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    SocketAddress address{.bytes = {}, .size = each->ai_addrlen};
    std::memcpy(&address.bytes, each->ai_addr, each->ai_addrlen);
    addresses.push_back(address);
  }
  return addresses;
}

auto Ipv4First(std::vector<SocketAddress> addresses) -> std::vector<SocketAddress> {
  std::ranges::stable_partition(addresses, [](const SocketAddress& address) { return address.family() == AF_INET; });
  return addresses;
}

auto LocalAddressTowards(const std::string& host) -> ErrorOr<std::string> {
  // Connecting a datagram socket sends nothing: the kernel chooses the route. Any port does.
  ASSIGN_OR_RETURN(const auto addresses, Resolve({host, 9}));
  int reason = 0;
  for (const SocketAddress& address : addresses) {
    const OwnedDescriptor socket_to_it(socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    SocketAddress own{.bytes = {}, .size = sizeof(sockaddr_storage)};
    if (socket_to_it.is_open() && connect(socket_to_it.number(), address.data(), address.size) == 0 &&
        getsockname(socket_to_it.number(), own.data(), &own.size) == 0) {
      return own.Host();
    }
    reason = errno;
  }
  return Fail(ExitCode::Environment, "this host has no route to {}: {}", host, std::strerror(reason));
}

/// Does the address serve peers on other hosts, or on this one?
static auto IsUsable(const sockaddr* address) -> bool {
  if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) {
    return false;
  }
  return address->sa_family == AF_INET ||
         !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

static auto Copy(const sockaddr* address) -> SocketAddress {
  SocketAddress copy{.bytes = {}, .size = 0};
  copy.size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&copy.bytes, address, copy.size);
  return copy;
}

auto AddressOfInterface(const std::string& names) -> ErrorOr<std::string> {
  ifaddrs* found = nullptr;
  FAIL_IF(getifaddrs(&found) != 0, ExitCode::Environment, "cannot list the network interfaces: {}",
          std::strerror(errno));
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, freeifaddrs);
  std::set<std::string> up;
  for (const std::string_view name : SplitWords(names, ",")) {
    for (const int family : {AF_INET, AF_INET6}) {
      for (const ifaddrs* each = found; each != nullptr; each = each->ifa_next) {
        if ((each->ifa_flags & IFF_UP) == 0 || !IsUsable(each->ifa_addr)) {
          continue;
        }
        up.insert(each->ifa_name);
        if (each->ifa_name == name && each->ifa_addr->sa_family == family) {
          return Copy(each->ifa_addr).Host();
        }
      }
    }
  }
  return Fail(ExitCode::Environment, "none of the interfaces {} is up with an address; those that are: {}", names,
              fmt::join(up, ", "));
}

auto IsLoopback(std::string_view host) -> bool {
  return host == "localhost" || host.starts_with("127.") || host == "::1" || host == "[::1]";
}

auto IsAddressOfThisHost(const std::string& text) -> bool {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(WithoutBrackets(text).c_str(), nullptr, &hints, &found) != 0) {
    return false;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  const OwnedDescriptor bound(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return bind(bound.number(), found->ai_addr, found->ai_addrlen) == 0;
}

}  // namespace shardc
