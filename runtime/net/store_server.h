// The server of a job's store, as a process of its own: it outlives the rank that started it for a while, so that the
// others can still read there who failed.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"
#include "runtime/net/address.h"

namespace shardc {

/// Belongs to the process that started it; in its forks it does nothing.
class StoreServer {
 public:
  using Address = Endpoint;

  /// Listens on this address and no other, and forks. If this process ends without Stop, however it ends, the server
  /// ends when its last client has gone, and `linger` later at the latest. It leaves alone the signals by which a
  /// launcher stops a process group, and holds no descriptor of this process open. Requires: this process has one
  /// thread. Errors: ExitCode::Environment with the address.
  /// `prefix`: of the job whose members it watches (JobStore::Join); empty: of none.
  static auto Start(const Address& address, Seconds linger, const std::string& prefix = "") -> ErrorOr<StoreServer>;
  StoreServer(StoreServer&& other) noexcept;
  auto operator=(StoreServer&& other) noexcept -> StoreServer&;
  /// As Stop.
  ~StoreServer() { Stop(); }

  auto port() const -> uint16_t { return port_; }
  /// 0 after Stop.
  auto pid() const -> pid_t { return pid_; }

  /// All clients are through: the server ends at once.
  auto Stop() -> void;
  /// This process has failed and will end: the server ends `linger` after this call, and the destructor leaves it
  /// alone.
  auto LetGo() -> void;

 private:
  StoreServer() = default;

  pid_t owner_ = 0;
  pid_t pid_ = 0;
  uint16_t port_ = 0;
  /// The other end is the server's: a byte in it says LetGo.
  OwnedDescriptor let_go_;
};

}  // namespace shardc
