// How attention cuts its work: tiles, and slots that own scratch. Part of the plan's meaning (the scratch buffers have
// these sizes, and bits depend on the cuts), so it is decided here, once for compiler and kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/base/units.h"

namespace shardc {

/// Rows and columns of a tile of scores. On 2 x Zen 4, query tiles of 32 and 64 were equally fast, 128 slower.
constexpr int64_t AttentionQueryTile = 64;
constexpr int64_t AttentionKeyTile = 64;

/// Shares that the work is cut in at most, each with its own scratch: as many threads as can help. The number of
/// threads is known only when the plan runs, and neither memory nor bits may depend on it.
constexpr int64_t MaxAttentionSlots = 16;

/// B batch, A heads, K kv heads, S sequence.
struct AttentionSizes {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t sequence = 0;

  /// Forward, an item of work is one (batch, head).
  auto forward_slots() const -> int64_t { return std::min(MaxAttentionSlots, batch * heads); }
  /// Backward, an item is one (batch, kv head), whose query heads add to the same dk and dv.
  auto backward_slots() const -> int64_t { return std::min(MaxAttentionSlots, batch * kv_heads); }
};

/// Floats of a slot: a tile of scores; running maximum and sum of each query.
constexpr int64_t AttentionSlotFloats = AttentionQueryTile * AttentionKeyTile + 2 * AttentionQueryTile;
/// Floats of a slot: a tile of probabilities and one of their gradients.
constexpr int64_t AttentionBackwardSlotFloats = 2 * AttentionQueryTile * AttentionKeyTile;

/// Floats before the slots of the backward pass: delta, [B, A, S], the next slot aligned to 64 bytes.
constexpr auto AttentionDeltaFloats(const AttentionSizes& sizes) -> int64_t {
  return RoundUp(sizes.batch * sizes.heads * sizes.sequence, 16);
}

}  // namespace shardc
