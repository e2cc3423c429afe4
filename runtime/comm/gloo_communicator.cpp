#include "runtime/comm/gloo_communicator.h"

#include <algorithm>
#include <cstring>

namespace shardc {

/// Calls `each(begin, length)` for the pieces of `count`, as long as it returns Success.
template <class Function>
static auto ForEachPiece(int64_t count, int64_t piece, const Function& each) -> Status {
  for (int64_t begin = 0; begin < count; begin += piece) {
    RETURN_IF_ERROR(each(begin, std::min(piece, count - begin)));
  }
  return Success{};
}

class GlooCommunicator::Crossing {
 public:
  Crossing(GlooCommunicator& comm, AxisSet axes)
      : comm_(comm), axes_(axes), peers_(comm.remote_[axes.bits]), group_(comm.GroupOf(axes)) {
    CHECK(peers_.group != nullptr, "no group over {} was made", ToText(axes));
  }

  auto exchange() const -> const shardc::Exchange& { return peers_.exchange; }
  auto members() const -> int64_t { return exchange().members; }
  auto axes() const -> AxisSet { return axes_; }
  /// This rank, among those that exchange.
  auto index() const -> int64_t { return peers_.group->index(); }
  /// The ranks that share memory, and this rank among them. With gloo-flat none does.
  auto local() const -> int64_t { return exchange().local; }
  auto local_index() const -> int64_t { return local() == 1 ? 0 : group_.index; }
  auto local_ranks() const -> const std::vector<int64_t>& { return group_.ranks; }
  auto Meet() -> Status { return local() == 1 ? Status(Success{}) : comm_.member().Meet(group_); }

  auto Gather(const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
    CountSent(bytes);
    const Waiting waiting(*this);
    return peers_.group->AllGather(mine, bytes, all);
  }
  auto AllToAll(const std::byte* to_each, int64_t stride, std::byte* from_each, int64_t bytes) -> Status {
    CountSent(bytes);
    const Waiting waiting(*this);
    return peers_.group->AllToAll(to_each, stride, from_each, bytes);
  }
  /// out (+)= the sum of the own term and of what came from each other member.
  auto FoldMembers(const std::byte* own, const std::byte* from_each, int64_t count, std::byte* out, ReduceTypes types,
                   bool accumulate) -> void {
    comm_.parts_.clear();
    for (int64_t i = 0; i < members(); ++i) {
      comm_.parts_.push_back(i == index() ? own : from_each + i * count * SizeOf(types.terms));
    }
    // Sums of hosts are folded as they come.
    const int64_t per_host = exchange().sends_terms ? exchange().fold : members();
    Fold(comm_.parts_, static_cast<size_t>(per_host), out, count, types, accumulate);
  }
  /// Bytes taken from peers on the host.
  auto taken() -> int64_t& { return taken_; }
  auto Done(CollectiveKind kind, int64_t payload) -> void {
    comm_.Count(kind, axes_, payload, taken_ + sent_, between_hosts_);
  }

 private:
  /// Says, for as long as it lives, that this rank waits for those of other hosts.
  struct Waiting {
    explicit Waiting(const Crossing& crossing) : member(crossing.comm_.member()) {
      const int64_t next = (crossing.peers_.group->index() + 1) % crossing.peers_.exchange.members;
      member.block().SetWaitsFor(member.rank(), crossing.peers_.ranks[static_cast<size_t>(next)],
                                 crossing.peers_.exchange.members - 1);
    }
    Waiting(const Waiting&) = delete;
    ~Waiting() { member.block().SetWaitsFor(member.rank(), 0, 0); }
    HostMember& member;
  };

  auto CountSent(int64_t to_each) -> void {
    sent_ += to_each * (members() - 1);
    between_hosts_ += to_each * (members() - exchange().members_on_host);
  }

  GlooCommunicator& comm_;
  AxisSet axes_;
  Peers& peers_;
  const Group& group_;
  int64_t taken_ = 0;
  int64_t sent_ = 0;
  int64_t between_hosts_ = 0;
};

GlooCommunicator::GlooCommunicator(std::shared_ptr<HostMember> member, PeerTable peers, const Mesh& mesh,
                                   ByAxisSet<Peers> remote)
    : HostCommunicator(std::move(member), std::move(peers), mesh), remote_(std::move(remote)) {
  parts_.reserve(static_cast<size_t>(mesh.num_ranks()));
}

auto GlooCommunicator::AllGather(Queue& queue, AxisSet axes, const CommSpan& shard, const CommSpan& full,
                                 const CommSpan& scratch) -> Status {
  if (!remote_[axes.bits].exchange.crosses()) {
    return HostCommunicator::AllGather(queue, axes, shard, full, scratch);
  }
  Crossing crossing(*this, axes);
  const int64_t members = crossing.members();
  const int64_t local = crossing.local();
  CHECK(full.bytes == shard.bytes * members * local, "all_gather of {} x {} x {} bytes into {}", members, local,
        shard.bytes, full.bytes);
  if (local == 1) {
    RETURN_IF_ERROR(crossing.Gather(shard.data, shard.bytes, full.data));
    crossing.Done(CollectiveKind::AllGather, full.bytes);
    return Success{};
  }
  const auto slot = [&](int64_t member, int64_t local_index) {
    return full.data + (member * local + local_index) * shard.bytes;
  };
  const bool is_one_for_all = full.arena == Arena::Gathered;
  RETURN_IF_ERROR(crossing.Meet());
  /// Copies what this rank, or a peer on the host, has of a rank on some host.
  const auto copy = [&](int64_t member, int64_t local_index, int64_t begin, const CommSpan& from) {
    const bool is_own = local_index == crossing.local_index();
    if (is_one_for_all && !is_own) {
      // The peer writes it into the one vector of the host.
      crossing.taken() += from.bytes;
      return;
    }
    std::byte* const to = slot(member, local_index) + begin;
    const std::byte* const data =
        is_own ? from.data : PeerSpan(crossing.local_ranks()[static_cast<size_t>(local_index)], from);
    crossing.taken() += is_own ? 0 : from.bytes;
    if (to != data) {
      std::memcpy(to, data, static_cast<size_t>(from.bytes));
    }
  };
  for (int64_t k = 1; k <= local; ++k) {
    copy(crossing.index(), (crossing.local_index() + k) % local, 0, shard);
  }
  const int64_t piece = std::min(shard.bytes, scratch.bytes / members);
  RETURN_IF_ERROR(ForEachPiece(shard.bytes, piece, [&](int64_t begin, int64_t bytes) -> Status {
    RETURN_IF_ERROR(crossing.Gather(shard.data + begin, bytes, scratch.data));
    RETURN_IF_ERROR(crossing.Meet());
    for (int64_t member = 0; member < members; ++member) {
      for (int64_t k = 1; member != crossing.index() && k <= local; ++k) {
        copy(member, (crossing.local_index() + k) % local, begin, PartOf(scratch, member * bytes, bytes));
      }
    }
    return crossing.Meet();
  }));
  crossing.Done(CollectiveKind::AllGather, full.bytes);
  return Success{};
}

auto GlooCommunicator::ReduceScatter(Queue& queue, AxisSet axes, const CommSpan& full, const CommSpan& shard,
                                     const CommSpan& scratch, ReduceTypes types, bool accumulate) -> Status {
  if (!remote_[axes.bits].exchange.crosses()) {
    return HostCommunicator::ReduceScatter(queue, axes, full, shard, scratch, types, accumulate);
  }
  Crossing crossing(*this, axes);
  const int64_t members = crossing.members();
  const int64_t local = crossing.local();
  const int64_t count = shard.bytes / SizeOf(types.sum);
  CHECK(full.bytes == count * SizeOf(types.terms) * members * local, "reduce_scatter of {} bytes into {} x {} x {}",
        full.bytes, members, local, count * SizeOf(types.terms));
  const DType travel = TravelType(crossing.exchange(), types.terms);
  const int64_t piece = ExchangePiece(count, members);
  RETURN_IF_ERROR(crossing.Meet());
  RETURN_IF_ERROR(ForEachPiece(count, piece, [&](int64_t begin, int64_t length) -> Status {
    const int64_t bytes = length * SizeOf(travel);
    const std::byte* to_each = full.data + begin * SizeOf(types.terms);
    int64_t stride = count * SizeOf(types.terms);
    std::byte* from_each = scratch.data;
    if (!crossing.exchange().sends_terms) {
      to_each = scratch.data;
      stride = bytes;
      from_each = scratch.data + members * bytes;
      for (int64_t member = 0; member < members; ++member) {
        const int64_t slice = member * local + crossing.local_index();
        const CommSpan terms =
            PartOf(full, (slice * count + begin) * SizeOf(types.terms), length * SizeOf(types.terms));
        FoldPeers(axes, terms, scratch.data + member * bytes, {types.terms, travel}, false, crossing.taken());
      }
    }
    RETURN_IF_ERROR(crossing.AllToAll(to_each, stride, from_each, bytes));
    crossing.FoldMembers(to_each + crossing.index() * stride, from_each, length, shard.data + begin * SizeOf(types.sum),
                         {travel, types.sum}, accumulate);
    return Success{};
  }));
  crossing.Done(CollectiveKind::ReduceScatter, full.bytes);
  return crossing.Meet();
}

auto GlooCommunicator::AllReduce(Queue& queue, AxisSet axes, const CommSpan& span, const CommSpan& scratch, DType dtype)
    -> Status {
  if (!remote_[axes.bits].exchange.crosses()) {
    return HostCommunicator::AllReduce(queue, axes, span, scratch, dtype);
  }
  Crossing crossing(*this, axes);
  RETURN_IF_ERROR(IsReadByPeers(span.arena) ? AllReduceBySlices(crossing, span, scratch, dtype)
                                            : AllReduceSmall(crossing, span, scratch, dtype));
  crossing.Done(CollectiveKind::AllReduce, span.bytes);
  return Success{};
}

auto GlooCommunicator::AllReduceSmall(Crossing& crossing, const CommSpan& span, const CommSpan& scratch, DType dtype)
    -> Status {
  const int64_t count = span.bytes / SizeOf(dtype);
  if (crossing.local() > 1) {
    crossing.taken() += span.bytes * (crossing.local() - 1);
    RETURN_IF_ERROR(member().Sum(GroupOf(crossing.axes()), span.data, count, dtype));
  }
  const int64_t piece = ExchangePiece(count, crossing.members());
  return ForEachPiece(count, piece, [&](int64_t begin, int64_t length) -> Status {
    std::byte* const data = span.data + begin * SizeOf(dtype);
    RETURN_IF_ERROR(crossing.Gather(data, length * SizeOf(dtype), scratch.data));
    crossing.FoldMembers(data, scratch.data, length, data, {dtype, dtype}, false);
    return Success{};
  });
}

auto GlooCommunicator::AllReduceBySlices(Crossing& crossing, const CommSpan& span, const CommSpan& scratch, DType dtype)
    -> Status {
  const int64_t members = crossing.members();
  const CommSpan own = SliceOf(span, crossing.local_index(), crossing.local());
  RETURN_IF_ERROR(crossing.Meet());
  if (crossing.local() > 1) {
    // Nobody reads this rank's terms of its own slice but itself: the sum may take their place.
    FoldPeers(crossing.axes(), own, own.data, {dtype, dtype}, false, crossing.taken());
  }
  const int64_t count = own.bytes / SizeOf(dtype);
  const int64_t piece = std::max<int64_t>(1, ExchangePiece(count, members));
  RETURN_IF_ERROR(ForEachPiece(count, piece, [&](int64_t begin, int64_t length) -> Status {
    const int64_t part = ReducePart(length, members);
    const int64_t part_bytes = part * SizeOf(dtype);
    const int64_t bytes = length * SizeOf(dtype);
    std::byte* const mine = scratch.data;
    std::byte* const others = scratch.data + members * part_bytes;
    std::byte* const data = own.data + begin * SizeOf(dtype);
    std::memcpy(mine, data, static_cast<size_t>(bytes));
    std::memset(mine + bytes, 0, static_cast<size_t>(members * part_bytes - bytes));
    RETURN_IF_ERROR(crossing.AllToAll(mine, part_bytes, others, part_bytes));
    crossing.FoldMembers(mine + crossing.index() * part_bytes, others, part, mine, {dtype, dtype}, false);
    RETURN_IF_ERROR(crossing.Gather(mine, part_bytes, others));
    std::memcpy(data, others, static_cast<size_t>(bytes));
    return Success{};
  }));
  if (crossing.local() == 1) {
    return Success{};
  }
  RETURN_IF_ERROR(crossing.Meet());
  CopySlices(crossing.axes(), span, crossing.taken());
  return crossing.Meet();
}

auto GlooCommunicator::Exchange(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all)
    -> Status {
  if (!remote_[axes.bits].exchange.crosses()) {
    return HostCommunicator::Exchange(queue, axes, mine, bytes, all);
  }
  Crossing crossing(*this, axes);
  const int64_t local = crossing.local();
  if (local > 1) {
    of_host_.resize(static_cast<size_t>(bytes * local));
    crossing.taken() += bytes * (local - 1);
    RETURN_IF_ERROR(member().Gather(GroupOf(axes), mine, bytes, of_host_.data()));
    mine = of_host_.data();
  }
  RETURN_IF_ERROR(crossing.Gather(mine, bytes * local, all));
  crossing.Done(CollectiveKind::Agree, bytes);
  return Success{};
}

}  // namespace shardc
