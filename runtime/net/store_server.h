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

  struct Options {
    /// How long the server stays at most after its process has ended without Stop, for clients that still talk.
    Seconds linger;
    /// Of the job whose members it watches (JobStore::Join); empty: of none.
    std::string prefix;
    /// Processes of the job that say nothing for so long are stopped or cut off.
    Seconds silence{1e9};
  };
  /// A client that has said nothing for so long will not come back to a job that has ended.
  static constexpr Seconds LongestSilence{5};

  /// Listens on this address and no other, and forks. If this process ends without Stop, however it ends, the server
  /// ends when its last client has gone or has been silent for LongestSilence, and `linger` later at the latest. While
  /// this process lives, the server ends when all clients have been silent for `silence`: then this process, which is
  /// one of them, is stopped, or the address of the server is gone. The server leaves alone the signals by which a
  /// launcher stops a process group, and holds no descriptor of this process open. Requires: this process has one
  /// thread. Errors: ExitCode::Environment with the address.
  static auto Start(const Address& address, const Options& options) -> ErrorOr<StoreServer>;
  StoreServer(StoreServer&& other) noexcept;
  auto operator=(StoreServer&& other) noexcept -> StoreServer&;
  /// As Stop.
  ~StoreServer() { Stop(); }

  /// The one address where it listens.
  auto address() const -> const Address& { return address_; }
  auto port() const -> uint16_t { return address_.port; }
  /// 0 after Stop.
  auto pid() const -> pid_t { return pid_; }

  /// All clients are through: the server ends at once.
  auto Stop() -> void;
  /// This process has failed and will end: the server goes on as after its end, and the destructor leaves it alone. A
  /// server that is stopped (SIGSTOP) ends at once.
  auto LetGo() -> void;

 private:
  StoreServer() = default;

  pid_t owner_ = 0;
  pid_t pid_ = 0;
  Address address_;
  /// The other end is the server's: a byte in it says LetGo.
  OwnedDescriptor let_go_;
};

}  // namespace shardc
