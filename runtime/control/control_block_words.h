// The words of a control block in shared memory, as control_block*.cpp use them: of the block, of each rank, and of
// each barrier. The order in which they are written and read is said where that is done.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "compiler/plan/types.h"

namespace shardc {

static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

// Each on cache lines of its own: a rank writes its words at every op.
struct alignas(64) RankWords {
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
  /// A wait of the rank has ended because the job had failed.
  std::atomic<bool> has_heard;
  /// 0, or (rank + 1) * 2^32 + count of the ranks of other hosts that the rank waits for.
  std::atomic<uint64_t> waits_for;
};

struct BarrierWords {
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> generation;
  std::atomic<uint32_t> sleepers;
};

struct BlockWords {
  /// 0, or that of Pack.
  alignas(64) std::atomic<uint64_t> failure;
  alignas(64) std::atomic<bool> stop;
  std::atomic<int64_t> completed_steps = -1;
  /// Hash of the first error that was told; 0: none was.
  std::atomic<uint64_t> first_error;
  static constexpr int64_t NoText = -2;
  /// The rank of this host that reported the first failure, or RankFailure::Elsewhere, and its text. Both are written
  /// before the failure is.
  std::atomic<int64_t> text_of = NoText;
  std::array<char, 2048> text;
};

}  // namespace shardc
