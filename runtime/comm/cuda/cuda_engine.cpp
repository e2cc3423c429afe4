#include "runtime/comm/cuda/cuda_engine.h"

#include <algorithm>
#include <limits>

#include "compiler/base/copied_pieces.h"
#include "compiler/ops/op_facts.h"
#include "compiler/plan/exchange.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/kernels/cuda/fold.h"

namespace shardc {

auto CudaEngine::Create(CudaDevice& device, std::shared_ptr<HostMember> member, std::shared_ptr<NcclGroups> remote)
    -> ErrorOr<std::unique_ptr<Engine>> {
  std::unique_ptr<CudaEngine> engine(new CudaEngine(device, std::move(member), std::move(remote)));
  if (IsFlat(device.plan().run.comm)) {
    // No rank works in the memory of another one, which it may not be able to reach.
    return std::unique_ptr<Engine>(std::move(engine));
  }
  const Group& all = engine->member().GroupOf(AxisSet::All());
  engine->slots_.reserve(all.ranks.size());
  // The order of ops is one on all ranks, and so is that of the pairs.
  std::vector<std::pair<Meetings*, const Group*>> met;
  for (const Section& section : device.plan().sections) {
    for (const Op& op : section.ops) {
      const auto collective = CollectiveOf(op);
      if (!collective) {
        continue;
      }
      const Group& group = engine->member().GroupOf(collective->axes);
      const std::pair entry{&engine->meetings_[static_cast<size_t>(op.stream)][group.axes_index], &group};
      if (group.ranks.size() > 1 &&
          std::ranges::find(met, entry.first, [](const auto& other) { return other.first; }) == met.end()) {
        met.push_back(entry);
      }
    }
  }
  RETURN_IF_ERROR(engine->peers_.Open(engine->member(), met.size()));
  for (size_t i = 0; i < met.size(); ++i) {
    const auto& [meetings, group] = met[i];
    for (const int64_t rank : group->ranks) {
      const auto local = static_cast<size_t>(rank - all.ranks.front());
      (rank == engine->member().rank() ? meetings->own : meetings->of_peers.emplace_back()) =
          engine->peers_.events(local, i);
    }
  }
  return std::unique_ptr<Engine>(std::move(engine));
}

CudaEngine::~CudaEngine() {
  if (!is_closed_) {
    device_.Abandon();
  }
}

auto CudaEngine::Close() -> Status {
  const Group& all = member().GroupOf(AxisSet::All());
  // First nobody uses anything of another rank any more, then nobody has it open.
  RETURN_IF_ERROR(member().Meet(all));
  peers_.Close();
  RETURN_IF_ERROR(member().Meet(all));
  is_closed_ = true;
  return Success{};
}

auto CudaEngine::MeetingsOf(const Queue& queue, const Group& group) -> Meetings& {
  const Stream stream = static_cast<const CudaDevice::CudaQueue&>(queue).name;
  Meetings& meetings = meetings_[static_cast<size_t>(stream)][group.axes_index];
  CHECK(!meetings.of_peers.empty(), "no op of the plan meets over {} on stream {}", group.name, ToText(stream));
  return meetings;
}

auto CudaEngine::Meet(Queue& queue, const Group& group) -> Status {
  if (group.ranks.size() == 1) {
    return member().Meet(group);
  }
  Meetings& meetings = MeetingsOf(queue, group);
  const cudaStream_t stream = StreamOf(queue);
  const size_t turn = std::exchange(meetings.turn, 1 - meetings.turn);
  RETURN_IF_ERROR(CudaStatus(cudaEventRecord(meetings.own[turn], stream), "recording an event for the peers"));
  RETURN_IF_ERROR(member().Meet(group));
  for (const PeerMemory::EventPair& events : meetings.of_peers) {
    RETURN_IF_ERROR(CudaStatus(cudaStreamWaitEvent(stream, events[turn]), "waiting for the event of a peer"));
  }
  return Success{};
}

auto CudaEngine::Copy(Queue& queue, std::byte* to, const std::byte* from, int64_t bytes) -> Status {
  return CudaStatus(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, StreamOf(queue)),
                    "copying");
}

auto CudaEngine::CopyRows(Queue& queue, std::byte* to, int64_t stride, const std::byte* from, int64_t bytes,
                          int64_t rows) -> Status {
  // The driver takes rows that lie no further apart.
  if (stride > std::numeric_limits<int32_t>::max()) {
    for (int64_t row = 0; row < rows; ++row) {
      RETURN_IF_ERROR(Copy(queue, to + row * stride, from + row * bytes, bytes));
    }
    return Success{};
  }
  const auto width = static_cast<size_t>(bytes);
  return CudaStatus(cudaMemcpy2DAsync(to, static_cast<size_t>(stride), from, width, width, static_cast<size_t>(rows),
                                      cudaMemcpyDefault, StreamOf(queue)),
                    "copying rows");
}

auto CudaEngine::Clear(Queue& queue, std::byte* to, int64_t bytes) -> Status {
  return CudaStatus(cudaMemsetAsync(to, 0, static_cast<size_t>(bytes), StreamOf(queue)), "clearing memory");
}

auto CudaEngine::Fold(Queue& queue, const std::vector<const std::byte*>& terms, size_t per_host, std::byte* out,
                      int64_t num_elements, ReduceTypes types, bool accumulate) -> Status {
  return cuda::Fold(StreamOf(queue), terms, per_host, out, num_elements, types, accumulate);
}

auto CudaEngine::AtPeer(int64_t rank, std::byte* own) const -> std::byte* {
  const std::ptrdiff_t offset = own - device_.memory();
  CHECK(offset >= 0 && offset < device_.memory_bytes(), "memory that rank {} does not share", rank);
  return peers_.memory(static_cast<size_t>(rank - member().block().ranks().begin)) + offset;
}

auto CudaEngine::Peer(int64_t rank, const CommSpan& span) const -> std::byte* {
  return rank == member().rank() ? span.data : AtPeer(rank, span.data);
}

auto CudaEngine::Sum(Queue& queue, const Group& group, std::byte* data, int64_t num_elements, DType dtype,
                     int64_t per_host) -> Status {
  Meetings& meetings = MeetingsOf(queue, group);
  const Stream stream = static_cast<const CudaDevice::CudaQueue&>(queue).name;
  const auto sum_piece = [&](int64_t begin, int64_t count) -> Status {
    // The peers may still read the slot of the last sum, but not the one before: they came to the last meeting after
    // they had read it.
    std::byte* const slot = device_.Slot(stream, group.axes_index, std::exchange(meetings.slot, 1 - meetings.slot));
    std::byte* const piece = data + begin * SizeOf(dtype);
    RETURN_IF_ERROR(Copy(queue, slot, piece, count * SizeOf(dtype)));
    RETURN_IF_ERROR(Meet(queue, group));
    slots_.clear();
    for (const int64_t rank : group.ranks) {
      slots_.push_back(AtPeer(rank, slot));
    }
    return Fold(queue, slots_, static_cast<size_t>(per_host), piece, count, {.terms = dtype, .sum = dtype}, false);
  };
  return ForEachPiece(num_elements, CudaDevice::SlotBytes / SizeOf(dtype), sum_piece);
}

auto CudaEngine::Remote(AxisSet axes) const -> NcclGroup& {
  CHECK(remote_ != nullptr, "an exchange over {} with other hosts", ToText(axes));
  return remote_->Of(axes);
}

auto CudaEngine::Gather(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
  return Remote(axes).AllGather(StreamOf(queue), mine, bytes, all);
}

auto CudaEngine::AllToAll(Queue& queue, AxisSet axes, const std::byte* to_each, int64_t stride, std::byte* from_each,
                          int64_t bytes) -> Status {
  return Remote(axes).AllToAll(StreamOf(queue), to_each, stride, from_each, bytes);
}

auto CudaEngine::SumSlots(Queue& queue, AxisSet axes, std::byte* slots, int64_t count) -> Status {
  return Remote(axes).SumSlots(StreamOf(queue), slots, count);
}

auto CudaEngine::SumOverMembers(Queue& queue, AxisSet axes, std::byte* data, int64_t num_elements, DType dtype)
    -> Status {
  return Remote(axes).Sum(StreamOf(queue), data, num_elements, dtype);
}

auto MakeCudaEngine(RankDevice& device, const std::shared_ptr<HostMember>& member,
                    const std::shared_ptr<NcclGroups>& remote) -> ErrorOr<std::unique_ptr<Engine>> {
  return CudaEngine::Create(static_cast<CudaDevice&>(device), member, remote);
}

}  // namespace shardc
