#include "runtime/control/control_block.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <new>

#include "compiler/base/processor.h"
#include "runtime/control/process_stat.h"

namespace shardc {

using Clock = std::chrono::steady_clock;

static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

/// A barrier of 2 ranks takes 0.34 us where both are there (2 cores of an EPYC, November 2026, chrt -r 10 tests_bench
/// --benchmark_filter=comm/barrier/2), a sleep and a wake-up 20 us: longer waits are cheaper asleep.
static constexpr auto SpinTime = std::chrono::microseconds(20);
static constexpr auto LookEvery = std::chrono::milliseconds(50);
/// The launcher hears of a death first and says how it came about; this is for when it does not.
static constexpr auto AskProcAfter = std::chrono::milliseconds(250);
/// The most that one look counts as waiting: a longer gap means that this process was stopped, and the whole job with
/// it (Ctrl-Z, a scheduler's suspend).
static constexpr auto LongestGap = std::chrono::seconds(1);

// Each on cache lines of its own: a rank writes its words at every op.
struct alignas(64) ControlBlock::RankWords {
  /// The op that began last, by PackPosition; 0 before the first op.
  std::atomic<uint64_t> position;
  /// By stream: the op that is under way there; 0: none is.
  std::array<std::atomic<uint64_t>, NumStreams> under_way;
  /// (barrier + 1) * 2^32 + generation of the last arrival.
  std::atomic<uint64_t> arrival;
  /// ProcessStat::start.
  std::atomic<int64_t> start;
  std::atomic<int32_t> pid;
  std::atomic<uint32_t> state;
  /// 0, or (rank + 1) * 2^32 + count of the ranks of other hosts that the rank waits for.
  std::atomic<uint64_t> waits_for;
};

struct ControlBlock::BarrierWords {
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> generation;
  std::atomic<uint32_t> sleepers;
};

struct ControlBlock::Block {
  /// 0, or that of Pack.
  alignas(64) std::atomic<uint64_t> failure;
  alignas(64) std::atomic<bool> stop;
  std::atomic<int64_t> completed_steps = -1;
  /// Hash of the first error that was told; 0: none was.
  std::atomic<uint64_t> first_error;
  /// What the first failure was told with, by a rank of this host or by another host: whether someone writes the text,
  /// and the text, which is there before the failure is.
  std::atomic<bool> has_text;
  std::array<char, 2048> text;
};

/// What one wait has seen so far.
struct ControlBlock::Patience {
  Clock::time_point began = Clock::now();
  Clock::time_point asked_proc = began;
  Clock::time_point looked = began;
  Clock::duration waited{};
  bool warned = false;
  /// By index in the group: position at the last look, and since when.
  std::vector<uint64_t> positions;
  std::vector<Clock::time_point> since;
};

/// A word that is not 0.
static auto Pack(const RankFailure& failure) -> uint64_t {
  return (static_cast<uint64_t>(failure.rank + 1) << 32) | (static_cast<uint64_t>(failure.code) << 16) |
         static_cast<uint64_t>(failure.signal + 1);
}

static auto FutexWait(std::atomic<uint32_t>& word, uint32_t expected, std::chrono::nanoseconds longest) -> void {
  const timespec time{.tv_sec = static_cast<time_t>(longest.count() / 1'000'000'000),
                      .tv_nsec = static_cast<long>(longest.count() % 1'000'000'000)};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, expected, &time, nullptr, 0);
}

static auto FutexWakeAll(std::atomic<uint32_t>& word) -> void {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

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

/// Where the parts of a block begin.
struct ControlBlock::Parts {
  size_t barriers = 0;
  size_t slots = 0;
  size_t end = 0;
};

auto ControlBlock::PartsOf() const -> Parts {
  const auto num_ranks = static_cast<size_t>(local_.size());
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  Parts parts;
  parts.barriers = sizeof(Block) + num_ranks * sizeof(RankWords);
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
  if (memory == MAP_FAILED) {
    return Fail(ExitCode::DoesNotFit, "cannot map {} for the ranks' control block: {}",
                FormatMemory(Bytes{static_cast<int64_t>(memory_bytes_)}), std::strerror(errno));
  }
  memory_ = memory;
  auto* at = static_cast<std::byte*>(memory);
  slots_ = at + parts.slots;
  block_ = reinterpret_cast<Block*>(at);
  ranks_ = reinterpret_cast<RankWords*>(at + sizeof(Block));
  barriers_ = reinterpret_cast<BarrierWords*>(at + parts.barriers);
  if (place_.is_made) {
    return Success{};
  }
  new (block_) Block{};
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

auto ControlBlock::MarkFailed(int64_t rank, ExitCode code, int signal) -> void {
  if (StateOf(rank) != RankState::Failed) {
    const bool by_itself = signal == 0 && WordsOf(rank).pid.load(std::memory_order_relaxed) == getpid();
    WordsOf(rank).state.store(static_cast<uint32_t>(by_itself ? RankState::Failed : RankState::Dead),
                              std::memory_order_release);
  }
  const RankFailure gone{.rank = rank, .code = ExitCode::Environment, .signal = -1};
  const RankFailure failure{.rank = rank, .code = code, .signal = signal};
  uint64_t before = 0;
  if (!block_->failure.compare_exchange_strong(before, Pack(failure), std::memory_order_seq_cst) &&
      before == Pack(gone)) {
    block_->failure.compare_exchange_strong(before, Pack(failure), std::memory_order_seq_cst);
  }
  WakeAll();
}

/// False where there is one.
auto ControlBlock::KeepText(const std::string& text) -> bool {
  if (block_->has_text.exchange(true)) {
    return false;
  }
  const size_t length = std::min(text.size(), block_->text.size() - 1);
  std::memcpy(block_->text.data(), text.data(), length);
  return true;
}

auto ControlBlock::MarkFailed(int64_t rank, const Error& error) -> void {
  if (!FirstFailure()) {
    KeepText(error.message);
  }
  MarkFailed(rank, error.code);
}

auto ControlBlock::MarkFailedElsewhere(ExitCode code, const std::string& text) -> void {
  if (!KeepText(text)) {
    return;
  }
  uint64_t before = 0;
  block_->failure.compare_exchange_strong(before, Pack({.rank = RankFailure::Elsewhere, .code = code, .signal = 0}),
                                          std::memory_order_seq_cst);
  WakeAll();
}

auto ControlBlock::WakeAll() -> void {
  // Sleepers look at the failure when they wake.
  for (size_t i = 0; i < num_barriers_; ++i) {
    FutexWakeAll(barriers_[i].generation);
  }
}

auto ControlBlock::FirstFailure() const -> std::optional<RankFailure> {
  const uint64_t failure = block_->failure.load(std::memory_order_acquire);
  if (failure == 0) {
    return std::nullopt;
  }
  return RankFailure{.rank = static_cast<int64_t>(failure >> 32) - 1,
                     .code = static_cast<ExitCode>((failure >> 16) & 0xffffU),
                     .signal = static_cast<int>(failure & 0xffffU) - 1};
}

auto ControlBlock::StateOf(int64_t rank) const -> RankState {
  return static_cast<RankState>(WordsOf(rank).state.load(std::memory_order_acquire));
}

auto ControlBlock::IsNews(const std::string& error) -> bool {
  const uint64_t hash = std::hash<std::string>()(error) | 1U;
  uint64_t before = 0;
  return block_->first_error.compare_exchange_strong(before, hash, std::memory_order_seq_cst) || before != hash;
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

/// ", waiting for rank 5 of another host"; empty if the rank does not.
static auto WaitsText(uint64_t word) -> std::string {
  const uint64_t count = word & 0xffffffffU;
  return word == 0    ? ""
         : count == 1 ? fmt::format(", waiting for rank {} of another host", (word >> 32) - 1)
                      : fmt::format(", waiting for {} ranks of other hosts", count);
}

auto ControlBlock::WhereIs(int64_t rank) const -> std::string {
  const RankWords& words = WordsOf(rank);
  const uint64_t last = words.position.load(std::memory_order_relaxed);
  if (last == 0) {
    return "not seen at any op yet";
  }
  std::string text = "last seen at " + PositionText(place_.plan, UnpackPosition(last));
  for (size_t s = 0; s < NumStreams; ++s) {
    const uint64_t beside = words.under_way[s].load(std::memory_order_relaxed);
    if (beside != 0 && beside != last) {
      text += fmt::format(", and on stream {} at {}", ToText(static_cast<Stream>(s)),
                          PositionText(place_.plan, UnpackPosition(beside)));
    }
  }
  text += WaitsText(words.waits_for.load(std::memory_order_relaxed));
  return text;
}

auto ControlBlock::NameOf(int64_t rank) const -> std::string {
  return place_.host_name.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} ({})", rank, place_.host_name);
}

auto ControlBlock::FailureText(const RankFailure& failure) const -> std::string {
  if (failure.rank == RankFailure::Elsewhere) {
    return block_->text.data();
  }
  std::string how;
  if (failure.signal > 0) {
    const char* name = sigabbrev_np(failure.signal);
    how = fmt::format("was killed by signal {} (SIG{})", failure.signal, name != nullptr ? name : "?");
  } else if (failure.signal < 0) {
    how = "is gone";
  } else {
    how = fmt::format("failed with exit code {}", static_cast<int>(failure.code));
  }
  return fmt::format("{} {}, {}", NameOf(failure.rank), how, WhereIs(failure.rank));
}

auto ControlBlock::FailureReport(const RankFailure& failure) const -> std::string {
  const std::string text = FailureText(failure);
  const bool said_why = failure.rank != RankFailure::Elsewhere && StateOf(failure.rank) == RankState::Failed;
  return said_why && block_->has_text ? fmt::format("{}: {}", text, block_->text.data()) : text;
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

auto ControlBlock::Barrier(const Group& group, int64_t rank, const WaitOptions& options) -> Status {
  if (const auto failure = FirstFailure()) {
    return Fail(ExitCode::Environment, "{}", FailureText(*failure));
  }
  if (group.ranks.size() == 1) {
    return Success{};
  }
  BarrierWords& barrier = barriers_[group.barrier];
  // Cannot change before this rank has arrived.
  const uint32_t generation = barrier.generation.load(std::memory_order_acquire);
  WordsOf(rank).arrival.store((static_cast<uint64_t>(group.barrier + 1) << 32) | generation, std::memory_order_relaxed);
  if (barrier.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == group.ranks.size()) {
    barrier.arrived.store(0, std::memory_order_relaxed);
    barrier.generation.store(generation + 1, std::memory_order_seq_cst);
    if (barrier.sleepers.load(std::memory_order_seq_cst) != 0) {
      FutexWakeAll(barrier.generation);
    }
    return Success{};
  }
  return Wait(group, rank, generation, options);
}

auto ControlBlock::Wait(const Group& group, int64_t rank, uint32_t generation, const WaitOptions& options) -> Status {
  BarrierWords& barrier = barriers_[group.barrier];
  const auto is_open = [&] { return barrier.generation.load(std::memory_order_acquire) != generation; };
  if (spin_) {
    constexpr int LooksPerClock = 32;
    const auto end = Clock::now() + SpinTime;
    do {
      for (int i = 0; i < LooksPerClock; ++i) {
        if (is_open()) {
          return Success{};
        }
        Pause();
      }
      // The missing rank may be waiting for this very core: without this a barrier of 2 ranks takes 57 us, not 7.5, on
      // 2 cores with 6 processes (2 cores of an EPYC, November 2026, tests_bench --benchmark_filter=comm/barrier/2).
      sched_yield();
    } while (Clock::now() < end);
  }
  Patience patience;
  while (!is_open()) {
    barrier.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (block_->failure.load(std::memory_order_seq_cst) == 0) {
      FutexWait(barrier.generation, generation, LookEvery);
    }
    barrier.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (is_open()) {
      break;
    }
    // A peer that looks missing may have opened the barrier meanwhile and continued.
    if (auto status = Inspect(group, rank, generation, options, patience); !status && !is_open()) {
      return status;
    }
  }
  return Success{};
}

auto ControlBlock::IsMissing(const Group& group, int64_t rank, uint32_t generation) const -> bool {
  const uint64_t here = (static_cast<uint64_t>(group.barrier + 1) << 32) | generation;
  return WordsOf(rank).arrival.load(std::memory_order_relaxed) != here;
}

/// Called by a waiting rank now and then: is there still something to wait for?
auto ControlBlock::Inspect(const Group& group, int64_t rank, uint32_t generation, const WaitOptions& options,
                           Patience& patience) -> Status {
  if (const auto failure = FirstFailure()) {
    return Fail(ExitCode::Environment, "{} (axis {})", FailureText(*failure), group.name);
  }
  const auto now = Clock::now();
  if (patience.positions.empty()) {
    patience.positions.assign(group.ranks.size(), 0);
    patience.since.assign(group.ranks.size(), patience.began);
  }
  const bool ask_proc = place_.members == Members::Processes && now - patience.asked_proc >= AskProcAfter;
  if (ask_proc) {
    patience.asked_proc = now;
  }
  for (size_t i = 0; i < group.ranks.size(); ++i) {
    const int64_t peer = group.ranks[i];
    const uint64_t position = WordsOf(peer).position.load(std::memory_order_relaxed);
    if (position != patience.positions[i]) {
      patience.positions[i] = position;
      patience.since[i] = now;
    }
    if (peer == rank || !IsMissing(group, peer, generation)) {
      continue;
    }
    const bool gone = ask_proc && IsGone(peer);
    if (StateOf(peer) == RankState::Finished) {
      return Fail(ExitCode::Environment, "rank {} has ended before this op (axis {}), {}", peer, group.name,
                  WhereIs(peer));
    }
    if (gone) {
      MarkFailed(peer, ExitCode::Environment, -1);
      return Fail(ExitCode::Environment, "{} (axis {})", FailureText(*FirstFailure()), group.name);
    }
  }
  patience.waited += std::min<Clock::duration>(now - patience.looked, LongestGap);
  patience.looked = now;
  const Seconds waited{std::chrono::duration<double>(patience.waited).count()};
  if (waited >= options.timeout) {
    return Fail(ExitCode::Environment, "timed out after {:g} s (axis {}), waiting for {}", options.timeout.value,
                group.name, MissingText(group, rank, generation, patience));
  }
  if (waited >= options.slow_after && !patience.warned && options.warn) {
    patience.warned = true;
    options.warn(fmt::format("has waited {:.0f} s (axis {}) for {}", waited.value, group.name,
                             MissingText(group, rank, generation, patience)));
  }
  return Success{};
}

auto ControlBlock::MissingText(const Group& group, int64_t rank, uint32_t generation, const Patience& patience) const
    -> std::string {
  constexpr size_t Most = 4;
  std::vector<std::string> texts;
  size_t more = 0;
  for (size_t i = 0; i < group.ranks.size(); ++i) {
    const int64_t peer = group.ranks[i];
    if (peer == rank || !IsMissing(group, peer, generation)) {
      continue;
    }
    if (texts.size() == Most) {
      ++more;
      continue;
    }
    const double still = std::chrono::duration<double>(Clock::now() - patience.since[i]).count();
    texts.push_back(fmt::format("rank {}, {}, there for {:.0f} s", peer, WhereIs(peer), still));
  }
  return fmt::format("{}{}", fmt::join(texts, "; "), more > 0 ? fmt::format("; and {} more", more) : "");
}

auto ControlBlock::GoneRanks() const -> std::vector<int64_t> {
  std::vector<int64_t> gone;
  for (int64_t rank = local_.begin; rank < local_.end; ++rank) {
    const RankState state = StateOf(rank);
    if (state == RankState::Running && IsGone(rank)) {
      gone.push_back(rank);
    }
  }
  return gone;
}

/// Has the process of a rank ended? Its number may have gone to another since.
auto ControlBlock::IsGone(int64_t rank) const -> bool {
  const RankWords& words = WordsOf(rank);
  if (StateOf(rank) == RankState::Starting) {
    return false;
  }
  const auto stat = ReadProcessStat(words.pid.load(std::memory_order_relaxed));
  return !stat || stat->state == 'Z' || stat->state == 'X' ||
         stat->start != words.start.load(std::memory_order_relaxed);
}

}  // namespace shardc
