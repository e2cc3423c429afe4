// A group of processes on several hosts that exchange memory: Gloo, by way of c10d. A pair of them is connected when it
// first exchanges something.
//
// Every member makes the same calls in the same order. A group has an error once: the connections are closed then, so
// that the peers learn of it too, and every further call has that error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"
#include "runtime/net/store.h"

namespace shardc {

/// One thread at a time. Errors: ExitCode::Environment with the peer, if its connection was closed or reset, or if it
/// did not come to the call within the timeout.
class PeerGroup {
 public:
  struct Options {
    /// Of the group, once per prefix of the store; messages name it.
    std::string name;
    int64_t index = 0;
    int64_t size = 1;
    /// Of each member, for messages; empty: they are numbered.
    std::vector<std::string> members = {};
    /// The address to listen on, by which the peers reach this member, or the name of an interface.
    std::string own_address;
    /// What the peers' messages call the host of this member; empty: by its address.
    std::string host_name = {};
    /// Bounds Create, and each call.
    Seconds timeout{600};
  };

  /// Every member has heard of every other on return. From now on the process ignores SIGPIPE, unless it has a handler
  /// for it. Cost: a constant number of calls to the store.
  static auto Create(JobStore& store, const Options& options) -> ErrorOr<std::unique_ptr<PeerGroup>>;
  ~PeerGroup();

  auto index() const -> int64_t { return options_.index; }
  auto size() const -> int64_t { return options_.size; }

  /// all = every member's `bytes` of `mine`, in the order of the group. Cost: each member sends `mine` to each peer,
  /// out of the memory itself. Few bytes of more than MostDirectPeers peers come in rounds instead, by way of others:
  /// messages and connections of a member then grow with the logarithm of the size.
  auto AllGather(const std::byte* mine, int64_t bytes, std::byte* all) -> Status;
  /// Each peer gets `bytes` from to_each + its index * stride, out of the memory itself. What a peer has for this
  /// member comes to from_each + its index * bytes; the own slots are left alone. Requires: the two are apart.
  auto AllToAll(const std::byte* to_each, int64_t stride, std::byte* from_each, int64_t bytes) -> Status;
  auto Barrier() -> Status;

  static constexpr int64_t MostDirectPeers = 15;
  /// Bytes of all members together, above which each peer is sent to.
  static constexpr int64_t MostBytesInRounds = int64_t{1} << 20;

 private:
  explicit PeerGroup(Options options);
  struct Body;

  auto Connect(JobStore& store, const std::string& own_address) -> Status;
  /// Member + `distance` gets what `sent` gives for it, and this member gets in its place in `from_each` what member -
  /// `distance` sends; for the distances from 1 to size - 1.
  template <class Sent>
  auto ExchangeWithEach(const Sent& sent, std::byte* from_each, int64_t bytes) -> Status;
  /// Replaces `all`, in which the own slot is set.
  auto GatherInRounds(int64_t bytes, std::byte* all) -> Status;
  struct Transfer;
  /// Carries out the transfers of body_, all at once.
  auto Exchange() -> Status;
  auto Break(int64_t peer, std::string_view why) -> Error;

  Options options_;
  std::vector<std::string> hosts_;
  std::unique_ptr<Body> body_;
  std::unique_ptr<Error> broken_;
};

}  // namespace shardc
