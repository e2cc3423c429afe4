// The first failure of a job as a control block keeps it: who may write it, what replaces it, and the texts that name
// the rank, how it ended and where it was. Also whether the process of a rank is gone.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "runtime/control/control_block.h"
#include "runtime/control/control_block_words.h"

namespace shardc {

/// Returns the failure in one word, which is never 0.
static auto Pack(const RankFailure& failure) -> uint64_t {
  return (static_cast<uint64_t>(failure.rank + 1) << 32) | (static_cast<uint64_t>(failure.code) << 16) |
         static_cast<uint64_t>(failure.signal + 1);
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

/// Keeps the text unless one is kept already. Returns true if it did.
auto ControlBlock::KeepText(int64_t rank, const std::string& text) -> bool {
  int64_t before = BlockWords::NoText;
  if (!block_->text_of.compare_exchange_strong(before, rank, std::memory_order_seq_cst)) {
    return false;
  }
  const size_t length = std::min(text.size(), block_->text.size() - 1);
  std::memcpy(block_->text.data(), text.data(), length);
  return true;
}

auto ControlBlock::MarkFailed(int64_t rank, const Error& error) -> void {
  if (!FirstFailure()) {
    KeepText(rank, error.message);
  }
  MarkFailed(rank, error.code);
}

auto ControlBlock::MarkFailedElsewhere(ExitCode code, const std::string& text) -> void {
  if (!KeepText(RankFailure::Elsewhere, text)) {
    return;
  }
  uint64_t before = 0;
  block_->failure.compare_exchange_strong(before, Pack({.rank = RankFailure::Elsewhere, .code = code, .signal = 0}),
                                          std::memory_order_seq_cst);
  WakeAll();
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

/// Returns a hash of the text that is never 0.
static auto HashOf(const std::string& error) -> uint64_t { return std::hash<std::string>()(error) | 1U; }

auto ControlBlock::IsNews(const std::string& error) -> bool {
  return IsFirst(error) || block_->first_error.load(std::memory_order_seq_cst) != HashOf(error);
}

auto ControlBlock::IsFirst(const std::string& error) -> bool {
  uint64_t before = 0;
  return block_->first_error.compare_exchange_strong(before, HashOf(error), std::memory_order_seq_cst);
}

auto ControlBlock::Listen(int64_t rank) -> Status {
  const auto failure = FirstFailure();
  return failure ? Status(Hear(rank, FailureText(*failure))) : Status(Success{});
}

auto ControlBlock::HasHeard(int64_t rank) const -> bool {
  return WordsOf(rank).has_heard.load(std::memory_order_relaxed);
}

auto ControlBlock::Hear(int64_t rank, const std::string& text) -> Error {
  WordsOf(rank).has_heard.store(true, std::memory_order_relaxed);
  return {ExitCode::Environment, text};
}

/// Returns the rank's wait for other hosts as text, ", waiting for rank 5 of another host"; empty if it does not wait.
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
  const bool said_why = failure.rank != RankFailure::Elsewhere && block_->text_of == failure.rank;
  return said_why ? fmt::format("{}: {}", text, block_->text.data()) : text;
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

auto ControlBlock::ProcessOf(int64_t rank) const -> std::optional<ProcessStat> {
  const RankWords& words = WordsOf(rank);
  const auto stat = ReadProcessStat(words.pid.load(std::memory_order_relaxed));
  return stat && stat->start == words.start.load(std::memory_order_relaxed) ? stat : std::nullopt;
}

auto ControlBlock::IsGone(int64_t rank) const -> bool {
  if (StateOf(rank) == RankState::Starting) {
    return false;
  }
  const auto stat = ProcessOf(rank);
  return !stat || stat->state == 'Z' || stat->state == 'X';
}

}  // namespace shardc
