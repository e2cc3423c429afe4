// The memory of a control block: where its words, barriers and slots lie, which ranks form a group, and what a rank
// writes of itself. Waiting is in control_block_waiting.cpp, failures are in control_block_failures.cpp.
#include "runtime/control/control_block.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "compiler/base/processor.h"
#include "runtime/control/control_block_words.h"

namespace shardc {

auto ControlBlock::CheckRanks(const Mesh& mesh) -> Status {
  return mesh.ranks_per_host() <= MaxRanks
             ? Status(Success{})
             : Fail(ExitCode::Environment,
                    "the plan's mesh has {} ranks on each of its hosts; one host runs at most {}",
                    mesh.ranks_per_host(), MaxRanks);
}

auto ControlBlock::Create(const Place& place) -> ErrorOr<std::unique_ptr<ControlBlock>> {
  RETURN_IF_ERROR(CheckRanks(place.mesh));
  std::unique_ptr<ControlBlock> block(new ControlBlock(place));
  RETURN_IF_ERROR(block->Layout());
  return block;
}

ControlBlock::ControlBlock(const Place& place)
    : place_(place), local_(place.mesh.RanksOfHost(place.host)), local_mesh_(place.mesh.OfOneHost()) {
  spin_ = NumCores() >= local_.size();
  first_barrier_.fill(-1);
  axes_index_.fill(-1);
  for (uint8_t bits = 1; bits < first_barrier_.size(); ++bits) {
    if (const AxisSet axes{bits}; Spread(local_mesh_, axes) == axes) {
      first_barrier_[bits] = static_cast<int64_t>(num_barriers_);
      axes_index_[bits] = static_cast<int64_t>(num_axes_sets_++);
      num_barriers_ += static_cast<size_t>(local_.size() / local_mesh_.size(axes));
    }
  }
}

/// Offsets of the parts of a block.
struct ControlBlock::Parts {
  size_t barriers = 0;
  size_t slots = 0;
  size_t end = 0;
};

auto ControlBlock::PartsOf() const -> Parts {
  const auto num_ranks = static_cast<size_t>(local_.size());
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  Parts parts;
  parts.barriers = sizeof(BlockWords) + num_ranks * sizeof(RankWords);
  const size_t words = parts.barriers + num_barriers_ * sizeof(BarrierWords);
  parts.slots = (words + page - 1) / page * page;
  parts.end = parts.slots + num_axes_sets_ * num_ranks * 2 * static_cast<size_t>(SlotBytes);
  return parts;
}

auto ControlBlock::BytesFor(const Place& place) -> int64_t {
  return static_cast<int64_t>(ControlBlock(place).PartsOf().end);
}

auto ControlBlock::Layout() -> Status {
  const auto num_ranks = static_cast<size_t>(local_.size());
  const Parts parts = PartsOf();
  memory_bytes_ = parts.end;
  const int kind = place_.file >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS;
  void* memory = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, kind | MAP_NORESERVE, place_.file, 0);
  FAIL_IF(memory == MAP_FAILED, ExitCode::DoesNotFit, "cannot map {} for the ranks' control block: {}",
          FormatMemory(Bytes{static_cast<int64_t>(memory_bytes_)}), std::strerror(errno));
  memory_ = memory;
  auto* at = static_cast<std::byte*>(memory);
  slots_ = at + parts.slots;
  block_ = reinterpret_cast<BlockWords*>(at);
  ranks_ = reinterpret_cast<RankWords*>(at + sizeof(BlockWords));
  barriers_ = reinterpret_cast<BarrierWords*>(at + parts.barriers);
  if (place_.is_made) {
    return Success{};
  }
  new (block_) BlockWords{};
  new (ranks_) RankWords[num_ranks]{};
  for (size_t i = 0; i < num_barriers_; ++i) {
    new (barriers_ + i) BarrierWords{};
  }
  return Success{};
}

ControlBlock::~ControlBlock() {
  if (memory_ != nullptr) {
    munmap(memory_, memory_bytes_);
  }
}

auto ControlBlock::WordsOf(int64_t rank) const -> RankWords& {
  CHECK(rank >= local_.begin && rank < local_.end, "rank {} is not of host {}", rank, place_.host);
  return ranks_[rank - local_.begin];
}

auto ControlBlock::Join(int64_t rank) -> void {
  RankWords& words = WordsOf(rank);
  const int32_t pid = getpid();
  words.pid.store(pid, std::memory_order_relaxed);
  words.start.store(ReadProcessStat(pid).value_or(ProcessStat{}).start, std::memory_order_relaxed);
  words.state.store(static_cast<uint32_t>(RankState::Running), std::memory_order_release);
}

auto ControlBlock::Finish(int64_t rank) -> void {
  WordsOf(rank).state.store(static_cast<uint32_t>(RankState::Finished), std::memory_order_release);
}

auto ControlBlock::StateOf(int64_t rank) const -> RankState {
  return static_cast<RankState>(WordsOf(rank).state.load(std::memory_order_acquire));
}

auto ControlBlock::SetPosition(int64_t rank, Stream stream, const Position& position) -> void {
  const uint64_t word = PackPosition(position);
  RankWords& words = WordsOf(rank);
  words.position.store(word, std::memory_order_relaxed);
  words.under_way[static_cast<size_t>(stream)].store(word, std::memory_order_relaxed);
}

auto ControlBlock::LeavePosition(int64_t rank, Stream stream) -> void {
  WordsOf(rank).under_way[static_cast<size_t>(stream)].store(0, std::memory_order_relaxed);
}

auto ControlBlock::SetWaitsFor(int64_t rank, int64_t other, int64_t count) -> void {
  const uint64_t word = count == 0 ? 0 : static_cast<uint64_t>(other + 1) << 32 | static_cast<uint64_t>(count);
  WordsOf(rank).waits_for.store(word, std::memory_order_relaxed);
}

auto ControlBlock::stop_flag() -> std::atomic<bool>& { return block_->stop; }

auto ControlBlock::completed_steps() -> std::atomic<int64_t>& { return block_->completed_steps; }

auto ControlBlock::GroupOf(AxisSet axes, int64_t rank) const -> Group {
  const AxisSet plain = Spread(local_mesh_, axes);
  Group group;
  group.name = ToText(Spread(place_.mesh, axes));
  if (plain.bits == 0) {
    group.ranks = {rank};
    return group;
  }
  const int64_t local_rank = rank - local_.begin;
  for (const int64_t member : local_mesh_.Group(plain, local_rank)) {
    group.ranks.push_back(local_.begin + member);
  }
  group.index = local_mesh_.IndexIn(plain, local_rank);
  group.barrier = static_cast<size_t>(first_barrier_[plain.bits] + local_mesh_.GroupNumber(plain, local_rank));
  group.axes_index = static_cast<size_t>(axes_index_[plain.bits]);
  return group;
}

auto ControlBlock::Slot(const Group& group, int64_t rank, int turn) -> std::byte* {
  const auto of_rank = group.axes_index * static_cast<size_t>(local_.size()) + static_cast<size_t>(rank - local_.begin);
  return slots_ + (of_rank * 2 + static_cast<size_t>(turn)) * static_cast<size_t>(SlotBytes);
}

}  // namespace shardc
