// Addresses of the hosts of a job: what a name stands for, and which address of this host its peers reach it by.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"

namespace shardc {

/// Where a store listens.
struct Endpoint {
  /// An IPv4 or IPv6 address, with or without brackets, or a name.
  std::string host;
  /// 0: any that is free; for a server only.
  uint16_t port = 0;

  /// "10.0.0.1:29500", "[fd00::1]:29500".
  auto Text() const -> std::string;
};

/// What the calls of the system take.
struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  auto data() const -> const sockaddr* { return reinterpret_cast<const sockaddr*>(&bytes); }
  auto data() -> sockaddr* { return reinterpret_cast<sockaddr*>(&bytes); }
  auto family() const -> int { return bytes.ss_family; }
  /// "10.0.0.1", "fd00::1".
  auto Host() const -> std::string;
  auto Port() const -> uint16_t;
  /// As Endpoint::Text.
  auto Text() const -> std::string { return Endpoint{Host(), Port()}.Text(); }
};

/// A descriptor of the process; closed at the end.
class OwnedDescriptor {
 public:
  OwnedDescriptor() = default;
  explicit OwnedDescriptor(int number) : number_(number) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept;
  auto operator=(OwnedDescriptor&& other) noexcept -> OwnedDescriptor&;
  ~OwnedDescriptor() { Close(); }

  auto number() const -> int { return number_; }
  auto is_open() const -> bool { return number_ >= 0; }
  auto Close() -> void;

 private:
  int number_ = -1;
};

/// Whether `host` is "localhost", or an address that a host has for itself alone.
auto IsLoopback(std::string_view host) -> bool;

/// All addresses of `endpoint`, in the order in which the resolver gives them. Errors: ExitCode::Environment with the
/// name. Cost: may wait for a name server.
auto Resolve(const Endpoint& endpoint) -> ErrorOr<std::vector<SocketAddress>>;
/// Those of IPv4 first, each kind in its order.
auto Ipv4First(std::vector<SocketAddress> addresses) -> std::vector<SocketAddress>;

/// The address of this host from which the way to `host` leaves: by it the other hosts of a job reach this one.
auto LocalAddressTowards(const std::string& host) -> ErrorOr<std::string>;

/// Is the text an address, and this host has it?
auto IsAddressOfThisHost(const std::string& text) -> bool;

/// The address of the first interface that is up, of a list such as GLOO_SOCKET_IFNAME has ("eth0,eth1"). IPv4 before
/// IPv6; link-local addresses do not count. Errors: ExitCode::Environment with the interfaces that there are.
auto AddressOfInterface(const std::string& names) -> ErrorOr<std::string>;

}  // namespace shardc
