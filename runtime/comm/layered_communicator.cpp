#include "runtime/comm/layered_communicator.h"

#include <algorithm>

#include "compiler/base/copied_pieces.h"
#include "compiler/plan/exchange.h"

namespace shardc {

/// Returns `bytes` of a span, from its byte `begin` on.
static auto PartOf(const CommSpan& span, int64_t begin, int64_t bytes) -> CommSpan {
  return {.data = span.data + begin, .bytes = bytes, .arena = span.arena, .offset = span.offset + begin};
}

/// Returns the slice of `span` that rank `index` of `num_ranks` sums in an all-reduce.
static auto SliceOf(const CommSpan& span, int64_t index, int64_t num_ranks) -> CommSpan {
  const int64_t begin = SliceBegin(span.bytes, index, num_ranks);
  return PartOf(span, begin, SliceBegin(span.bytes, index + 1, num_ranks) - begin);
}

class LayeredCommunicator::Call {
 public:
  Call(LayeredCommunicator& comm, Queue& queue, AxisSet axes)
      : exchange(ExchangeOver(comm.mesh_, comm.comm_, axes)),
        members(exchange.members),
        local(exchange.local),
        comm_(comm),
        engine_(*comm.engine_),
        queue_(queue),
        axes_(axes),
        group_(engine_.member().GroupOf(axes)) {
    const int64_t number = comm.mesh_.IndexIn(axes, engine_.member().rank());
    index = number / local;
    local_index = number % local;
  }

  const shardc::Exchange exchange;
  /// Those that exchange, and this rank among them.
  const int64_t members;
  int64_t index = 0;
  /// The ranks that work in the memory of one host, and this rank among them.
  const int64_t local;
  int64_t local_index = 0;

  auto crosses() const -> bool { return exchange.crosses(); }
  /// Returns true if no rank works in the memory of another.
  auto is_flat() const -> bool { return crosses() && local == 1; }

  auto At(const CommSpan& span) const -> std::byte* { return engine_.Peer(engine_.member().rank(), span); }
  auto Meet() -> Status { return is_flat() ? Status(Success{}) : engine_.Meet(queue_, group_); }
  /// Copies what rank `peer` of those on the host has of `span`. Only counts it where that rank `writes` it itself.
  auto Take(std::byte* to, int64_t peer, const CommSpan& span, bool writes = false) -> Status {
    taken_ += peer == local_index ? 0 : span.bytes;
    const std::byte* const from = writes ? to : PeerSpan(peer, span);
    return to == from ? Status(Success{}) : engine_.Copy(queue_, to, from, span.bytes);
  }
  /// Copies as Take does, in rows of `bytes` that begin `stride` bytes apart in `to`.
  auto TakeRows(std::byte* to, int64_t stride, int64_t peer, const CommSpan& span, int64_t bytes, bool writes)
      -> Status {
    taken_ += peer == local_index ? 0 : span.bytes;
    return writes || span.bytes == 0
               ? Status(Success{})
               : engine_.CopyRows(queue_, to, stride, PeerSpan(peer, span), bytes, span.bytes / bytes);
  }
  /// Writes the sum of what the ranks on the host have in `terms` to `out`.
  auto FoldPeers(const CommSpan& terms, std::byte* out, ReduceTypes types, bool accumulate) -> Status {
    comm_.terms_.clear();
    for (int64_t peer = 0; peer < local; ++peer) {
      comm_.terms_.push_back(PeerSpan(peer, terms));
    }
    taken_ += terms.bytes * (local - 1);
    return Fold(exchange.fold, out, terms.bytes / SizeOf(types.terms), types, accumulate);
  }
  /// Replaces `data` by the sum over the host.
  auto Sum(std::byte* data, int64_t num_elements, DType dtype) -> Status {
    taken_ += num_elements * SizeOf(dtype) * (local - 1);
    return local == 1 ? Status(Success{}) : engine_.Sum(queue_, group_, data, num_elements, dtype, exchange.fold);
  }
  /// Gathers memory of the host over the ranks of the host.
  auto GatherOnHost(const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
    taken_ += bytes * (local - 1);
    return engine_.member().Gather(group_, mine, bytes, all);
  }

  /// Gathers memory of the host over the members.
  auto GatherOverHosts(const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
    CountSent(bytes);
    return comm_.gather_over_hosts_(axes_, mine, bytes, all);
  }

  auto Gather(const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
    CountSent(bytes);
    return engine_.Gather(queue_, axes_, mine, bytes, all);
  }
  auto AllToAll(const std::byte* to_each, int64_t stride, std::byte* from_each, int64_t bytes) -> Status {
    CountSent(bytes);
    return engine_.AllToAll(queue_, axes_, to_each, stride, from_each, bytes);
  }
  /// Replaces the own slot by its sum over the members, by the library between them.
  auto SumSlots(std::byte* slots, int64_t count) -> Status {
    CountSent(count * SizeOf(DType::F32));
    return engine_.SumSlots(queue_, axes_, slots, count);
  }
  auto SumOverMembers(std::byte* data, int64_t num_elements, DType dtype) -> Status {
    CountSent(num_elements == 0 ? 0 : 2 * ReducePart(num_elements, members) * SizeOf(dtype));
    return engine_.SumOverMembers(queue_, axes_, data, num_elements, dtype);
  }
  /// Computes out (+)= term.
  auto FoldOne(const std::byte* term, int64_t count, std::byte* out, ReduceTypes types, bool accumulate) -> Status {
    comm_.terms_.assign(1, term);
    return Fold(1, out, count, types, accumulate);
  }
  /// Computes out (+)= the sum of the own term and of what came from each other member.
  auto FoldMembers(const std::byte* own, const std::byte* from_each, int64_t count, std::byte* out, ReduceTypes types,
                   bool accumulate) -> Status {
    comm_.terms_.clear();
    for (int64_t i = 0; i < members; ++i) {
      comm_.terms_.push_back(i == index ? own : from_each + i * count * SizeOf(types.terms));
    }
    // Sums of hosts are folded as they come.
    return Fold(exchange.sends_terms ? exchange.fold : members, out, count, types, accumulate);
  }
  auto Done(CollectiveKind kind, int64_t payload) -> void {
    comm_.Count(kind, axes_, payload, taken_ + sent_, between_hosts_);
  }

  auto SumAsItIs(const CommSpan& span, const CommSpan& scratch, DType dtype) -> Status;
  auto SumBySlices(const CommSpan& span, const CommSpan& scratch, DType dtype) -> Status;
  /// Sums `own` over the hosts, in place: each of them sums a part of each piece.
  auto SumOverHosts(const CommSpan& own, const CommSpan& scratch, DType dtype) -> Status;

 private:
  auto PeerSpan(int64_t peer, const CommSpan& span) const -> std::byte* {
    return peer == local_index ? At(span) : engine_.Peer(group_.ranks[static_cast<size_t>(peer)], span);
  }
  auto Fold(int64_t per_host, std::byte* out, int64_t count, ReduceTypes types, bool accumulate) -> Status {
    return engine_.Fold(queue_, comm_.terms_, static_cast<size_t>(per_host), out, count, types, accumulate);
  }
  auto CountSent(int64_t to_each) -> void {
    sent_ += to_each * (members - 1);
    between_hosts_ += to_each * (members - exchange.members_on_host);
  }

  LayeredCommunicator& comm_;
  Engine& engine_;
  Queue& queue_;
  AxisSet axes_;
  const Engine::Group& group_;
  /// Bytes taken from peers on the host.
  int64_t taken_ = 0;
  int64_t sent_ = 0;
  int64_t between_hosts_ = 0;
};

LayeredCommunicator::LayeredCommunicator(std::unique_ptr<Engine> engine, const Mesh& mesh, Comm comm,
                                         GatherOverHosts gather_over_hosts)
    : engine_(std::move(engine)), mesh_(mesh), comm_(comm), gather_over_hosts_(std::move(gather_over_hosts)) {
  terms_.reserve(static_cast<size_t>(mesh.num_ranks()));
}

auto LayeredCommunicator::AllGather(Queue& queue, AxisSet axes, const CommSpan& shard, const CommSpan& full,
                                    const CommSpan& scratch) -> Status {
  Call call(*this, queue, axes);
  const int64_t members = call.members;
  const int64_t local = call.local;
  CHECK(full.bytes == shard.bytes * members * local, "all_gather of {} x {} x {} bytes into {}", members, local,
        shard.bytes, full.bytes);
  RETURN_IF_ERROR(call.Meet());
  /// Calls take(peer, writes) for the ranks on the host: beginning with the next one, so that not all read one rank's
  /// memory at a time, and ending with this one.
  const auto for_each_peer = [&](const auto& take) -> Status {
    for (int64_t k = 1; k <= local; ++k) {
      // If the full vector is one for all ranks of a host, each of them writes its own slice, and those of the ranks
      // that have its number on the other hosts: this is all that the others take from it.
      const bool writes = full.arena == Arena::Gathered && k % call.exchange.fold != 0;
      RETURN_IF_ERROR(take((call.local_index + k) % local, writes));
    }
    return Success{};
  };
  /// Returns where the slice of a rank on the host of a member lies in the full vector.
  const auto slice_of = [&](int64_t member, int64_t peer) {
    return call.At(full) + (member * local + peer) * shard.bytes;
  };
  if (call.is_flat()) {
    RETURN_IF_ERROR(call.Gather(call.At(shard), shard.bytes, call.At(full)));
  } else {
    RETURN_IF_ERROR(for_each_peer(
        [&](int64_t peer, bool writes) { return call.Take(slice_of(call.index, peer), peer, shard, writes); }));
  }
  if (!call.crosses()) {
    RETURN_IF_ERROR(call.Meet());
  } else if (!call.is_flat()) {
    const int64_t piece = std::min(shard.bytes, scratch.bytes / members);
    RETURN_IF_ERROR(ForEachPiece(shard.bytes, piece, [&](int64_t begin, int64_t bytes) -> Status {
      RETURN_IF_ERROR(call.Gather(call.At(shard) + begin, bytes, call.At(scratch)));
      RETURN_IF_ERROR(call.Meet());
      RETURN_IF_ERROR(for_each_peer([&](int64_t peer, bool writes) -> Status {
        for (const Interval others : {Interval{0, call.index}, Interval{call.index + 1, members}}) {
          RETURN_IF_ERROR(call.TakeRows(slice_of(others.begin, peer) + begin, local * shard.bytes, peer,
                                        PartOf(scratch, others.begin * bytes, others.size() * bytes), bytes, writes));
        }
        return Success{};
      }));
      return call.Meet();
    }));
  }
  call.Done(CollectiveKind::AllGather, full.bytes);
  return Success{};
}

auto LayeredCommunicator::ReduceScatter(Queue& queue, AxisSet axes, const CommSpan& full, const CommSpan& shard,
                                        const CommSpan& scratch, ReduceTypes types, bool accumulate) -> Status {
  Call call(*this, queue, axes);
  const int64_t members = call.members;
  const int64_t local = call.local;
  const int64_t count = shard.bytes / SizeOf(types.sum);
  const int64_t slice_bytes = count * SizeOf(types.terms);
  CHECK(full.bytes == slice_bytes * members * local, "reduce_scatter of {} bytes into {} x {} x {}", full.bytes,
        members, local, slice_bytes);
  RETURN_IF_ERROR(call.Meet());
  const auto sum_piece = [&](int64_t begin, int64_t length) -> Status {
    std::byte* const out = call.At(shard) + begin * SizeOf(types.sum);
    const auto terms_of = [&](int64_t member) {
      return PartOf(full, (member * local + call.local_index) * slice_bytes + begin * SizeOf(types.terms),
                    length * SizeOf(types.terms));
    };
    if (!call.crosses()) {
      return call.FoldPeers(terms_of(0), out, types, accumulate);
    }
    const DType travel = TravelType(call.exchange, types.terms);
    const int64_t bytes = length * SizeOf(travel);
    const std::byte* to_each = call.At(full) + begin * SizeOf(types.terms);
    int64_t stride = slice_bytes;
    std::byte* from_each = call.At(scratch);
    if (!call.exchange.sends_terms) {
      to_each = from_each;
      stride = bytes;
      for (int64_t member = 0; member < members; ++member, from_each += bytes) {
        RETURN_IF_ERROR(call.FoldPeers(terms_of(member), from_each, {types.terms, travel}, false));
      }
    }
    if (call.exchange.sums_by_library) {
      std::byte* const slots = call.At(scratch);
      RETURN_IF_ERROR(call.SumSlots(slots, length));
      return call.FoldOne(slots + call.index * bytes, length, out, {travel, types.sum}, accumulate);
    }
    RETURN_IF_ERROR(call.AllToAll(to_each, stride, from_each, bytes));
    return call.FoldMembers(to_each + call.index * stride, from_each, length, out, {travel, types.sum}, accumulate);
  };
  RETURN_IF_ERROR(ForEachPiece(count, call.crosses() ? ExchangePiece(count, members) : count, sum_piece));
  call.Done(CollectiveKind::ReduceScatter, full.bytes);
  return call.Meet();
}

auto LayeredCommunicator::AllReduce(Queue& queue, AxisSet axes, const CommSpan& span, const CommSpan& scratch,
                                    DType dtype) -> Status {
  Call call(*this, queue, axes);
  RETURN_IF_ERROR(IsReadByPeers(span.arena) ? call.SumBySlices(span, scratch, dtype)
                                            : call.SumAsItIs(span, scratch, dtype));
  call.Done(CollectiveKind::AllReduce, span.bytes);
  return Success{};
}

auto LayeredCommunicator::Call::SumAsItIs(const CommSpan& span, const CommSpan& scratch, DType dtype) -> Status {
  const int64_t count = span.bytes / SizeOf(dtype);
  RETURN_IF_ERROR(Sum(At(span), count, dtype));
  if (exchange.sums_by_library) {
    return crosses() ? SumOverMembers(At(span), count, dtype) : Status(Success{});
  }
  return ForEachPiece(crosses() ? count : 0, ExchangePiece(count, members),
                      [&](int64_t begin, int64_t length) -> Status {
                        std::byte* const data = At(span) + begin * SizeOf(dtype);
                        RETURN_IF_ERROR(Gather(data, length * SizeOf(dtype), At(scratch)));
                        return FoldMembers(data, At(scratch), length, data, {dtype, dtype}, false);
                      });
}

auto LayeredCommunicator::Call::SumBySlices(const CommSpan& span, const CommSpan& scratch, DType dtype) -> Status {
  const CommSpan own = SliceOf(span, local_index, local);
  RETURN_IF_ERROR(Meet());
  if (local > 1) {
    // Nobody reads this rank's terms of its own slice but itself: the sum may take their place.
    RETURN_IF_ERROR(FoldPeers(own, At(own), {dtype, dtype}, false));
  }
  if (crosses()) {
    RETURN_IF_ERROR(exchange.sums_by_library ? SumOverMembers(At(own), own.bytes / SizeOf(dtype), dtype)
                                             : SumOverHosts(own, scratch, dtype));
  }
  RETURN_IF_ERROR(Meet());
  for (int64_t k = 1; k < local; ++k) {
    const int64_t peer = (local_index + k) % local;
    const CommSpan slice = SliceOf(span, peer, local);
    RETURN_IF_ERROR(Take(At(slice), peer, slice));
  }
  return Meet();
}

auto LayeredCommunicator::Call::SumOverHosts(const CommSpan& own, const CommSpan& scratch, DType dtype) -> Status {
  const int64_t count = own.bytes / SizeOf(dtype);
  return ForEachPiece(count, ExchangePiece(count, members), [&](int64_t begin, int64_t length) -> Status {
    const int64_t part = ReducePart(length, members);
    const int64_t part_bytes = part * SizeOf(dtype);
    const int64_t bytes = length * SizeOf(dtype);
    std::byte* const mine = At(scratch);
    std::byte* const others = mine + members * part_bytes;
    std::byte* const data = At(own) + begin * SizeOf(dtype);
    RETURN_IF_ERROR(engine_.Copy(queue_, mine, data, bytes));
    RETURN_IF_ERROR(engine_.Clear(queue_, mine + bytes, members * part_bytes - bytes));
    RETURN_IF_ERROR(AllToAll(mine, part_bytes, others, part_bytes));
    RETURN_IF_ERROR(FoldMembers(mine + index * part_bytes, others, part, mine, {dtype, dtype}, false));
    RETURN_IF_ERROR(Gather(mine, part_bytes, others));
    return engine_.Copy(queue_, data, others, bytes);
  });
}

auto LayeredCommunicator::Exchange(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all)
    -> Status {
  Call call(*this, queue, axes);
  if (!call.is_flat()) {
    of_host_.resize(static_cast<size_t>(call.crosses() ? bytes * call.local : 0));
    std::byte* const of_host = call.crosses() ? of_host_.data() : all;
    RETURN_IF_ERROR(call.GatherOnHost(mine, bytes, of_host));
    mine = of_host;
  }
  if (call.crosses()) {
    RETURN_IF_ERROR(call.GatherOverHosts(mine, bytes * call.local, all));
  }
  call.Done(CollectiveKind::Agree, bytes);
  return Success{};
}

}  // namespace shardc
