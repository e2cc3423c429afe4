// A group of GPUs on several hosts that exchange memory: a communicator of NCCL, as one member takes part in it.
//
// Every member makes the same calls in the same order. A group has an error once, and every further call has that
// error. Where NCCL moves bytes alone, neither its version nor the ways that it chooses change a result. Its sums are
// in an order of its own, which hangs on its version, the number of members and what connects them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"
#include "compiler/mesh/mesh.h"
#include "runtime/comm/nccl/nccl_api.h"
#include "runtime/net/store.h"

namespace shardc {

/// One thread at a time. Errors: those of NCCL and of Options::look; ExitCode::Environment with the members that did
/// not come within the timeout.
class NcclGroup {
 public:
  struct Options {
    /// Name of the group, once per prefix of the store; messages name it.
    std::string name;
    int64_t index = 0;
    /// At least 2: a communicator takes hundreds of MiB of a GPU.
    int64_t size = 2;
    /// Name of each member, for messages.
    std::vector<std::string> members;
    /// Name of this member's host in the messages of the others.
    std::string host_name;
    /// Fails if another rank has failed. Asked while this member waits.
    std::function<Status()> look;
    /// Bounds Create, and the time in which NCCL takes a call.
    Seconds timeout{600};
  };

  /// Makes the communicator, together with all members. Requires: the calling thread has its GPU, and `api` outlives
  /// the process. Cost: a constant number of calls to the store.
  static auto Create(NcclApi& api, JobStore& store, const Options& options) -> ErrorOr<std::unique_ptr<NcclGroup>>;
  NcclGroup(const NcclGroup&) = delete;
  /// Begins to abort the communicator, unless NcclGroups has ended it.
  ~NcclGroup();

  /// Enqueues: all = every member's `bytes` of `mine`, in the order of the group. `mine` may be the own slice of `all`.
  auto AllGather(NcclApi::Stream stream, const std::byte* mine, int64_t bytes, std::byte* all) -> Status;
  /// Enqueues: each peer gets `bytes` from to_each + its index * stride, and what it has for this member comes to
  /// from_each + its index * bytes; the own slots are left alone. Requires: the two are apart.
  auto AllToAll(NcclApi::Stream stream, const std::byte* to_each, int64_t stride, std::byte* from_each, int64_t bytes)
      -> Status;
  /// Enqueues: own slot = its sum over the members, of `slots` of `count` f32, one for each member. The other slots may
  /// change.
  auto SumSlots(NcclApi::Stream stream, std::byte* slots, int64_t count) -> Status;
  /// Enqueues: data = its sum over the members. Dtypes F32, F64, I64.
  auto Sum(NcclApi::Stream stream, std::byte* data, int64_t count, DType dtype) -> Status;
  /// Returns the error that came up while what was enqueued is under way, if there is one.
  auto Check() -> Status;

 private:
  friend class NcclGroups;

  NcclGroup(NcclApi& api, Options options) : api_(api), options_(std::move(options)) {}

  /// Tells the others the unique id, or takes it from them.
  auto Meet(JobStore& store) -> ErrorOr<NcclApi::UniqueId>;
  auto Connect(JobStore& store) -> Status;
  /// Calls `call`, and waits until the communicator takes the next one. `hint`: what to do if it never does.
  template <class Call>
  auto Run(const Call& call, std::string_view hint = "") -> Status;
  auto AwaitReady(std::string_view hint) -> Status;
  /// Returns the error, which every further call has.
  auto Break(Error error) -> Error;
  auto NameOf(int64_t member) const -> std::string;
  /// Returns the other members, "rank 2 (node-b) and rank 4 (node-c)", of many only some.
  auto PeersText() const -> std::string;

  NcclApi& api_;
  Options options_;
  /// Host of each member.
  std::vector<std::string> hosts_;
  /// Null before BeginInit, and after the end.
  NcclApi::Communicator* communicator_ = nullptr;
  std::optional<Error> broken_;
};

/// The groups of one rank: for each set of axes that crosses hosts one, which sets with the same members share.
class NcclGroups {
 public:
  /// How long communicators have to end. Whatever hangs then is left to the end of the process.
  static constexpr Seconds Grace{2};

  /// Takes in `look`, which is that of NcclGroup::Options.
  NcclGroups(ByAxisSet<std::shared_ptr<NcclGroup>> groups, std::function<Status()> look, Seconds grace = Grace)
      : groups_(std::move(groups)), look_(std::move(look)), grace_(grace) {}
  NcclGroups(const NcclGroups&) = delete;
  /// Ends all communicators at once, each in a thread of its own: destroys them, or aborts them if a rank has failed.
  ~NcclGroups();

  /// Returns the group for an exchange. Requires: the plan exchanges over the set.
  auto Of(AxisSet axes) -> NcclGroup&;
  /// Returns with whom the last exchange was, as the end of a message: "; the last exchange was with rank 3 (node-b)".
  auto LastText() const -> std::string;
  /// Returns the first error of a group.
  auto Check() const -> Status;

 private:
  friend class NcclGroup;

  /// Ends the communicators of groups, as far as they have one and the grace allows it.
  static auto End(const std::vector<NcclGroup*>& groups, bool aborts, Seconds grace) -> void;
  /// Returns each group once.
  auto Groups() const -> std::vector<NcclGroup*>;

  ByAxisSet<std::shared_ptr<NcclGroup>> groups_;
  std::function<Status()> look_;
  Seconds grace_;
  /// Group of the last exchange; null before the first.
  const NcclGroup* last_ = nullptr;
};

}  // namespace shardc
