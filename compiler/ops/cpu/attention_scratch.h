// How attention cuts its work on a device of the family Cpu: tiles, and slots that own scratch. Part of the plan's
// meaning (the scratch buffers have these sizes, and bits depend on the cuts), so it is decided here, once for compiler
// and kernels. The sizes of tiles are those of the device (schemas/devices.def).
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/base/devices.h"
#include "compiler/ops/cpu/scratch_slots.h"
#include "compiler/ops/op_facts.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// B batch, A heads, K kv heads, S sequence, D head_dim.
struct AttentionSizes {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t sequence = 0;
  int64_t head_dim = 0;
  /// The tiles of the plan's device.
  CpuBlocks blocks;

  auto heads_per_kv() const -> int64_t { return heads / kv_heads; }
  /// Returns how many items of work there are. An item is one (batch, kv head): its query heads read the same keys, and
  /// add to the same dk and dv.
  auto items() const -> int64_t { return batch * kv_heads; }
  /// Returns the slots that the plan has scratch for. `threads` as in plan.run: 0 is open.
  auto slots(int64_t threads) const -> int64_t { return ScratchSlots(threads, items()); }
  /// Returns how many positions of queries meet a packed tile of keys: some tiles, fewer if many heads share the keys.
  auto query_positions() const -> int64_t {
    return RoundUp(CeilDiv(blocks.attention_query_rows, heads_per_kv()), blocks.attention_query_tile);
  }

  /// Returns the floats from row to row. It is a line more than the rows need, since at powers of two they would fall
  /// into the same few sets of the cache; and an even number of elements, with a zero after an odd number.
  auto tile_stride() const -> int64_t { return std::min(blocks.attention_key_tile, RoundUp(sequence, 32)) + 16; }
  auto head_stride() const -> int64_t { return RoundUp(head_dim, 32) + 16; }
  auto queries_stride() const -> int64_t { return blocks.attention_backward_query_tile + 16; }

  auto keys() const -> int64_t { return std::min(blocks.attention_key_tile, RoundUp(sequence, 2)); }
  /// Returns the floats of the keys (or values) of a tile as columns, and as rows.
  auto key_columns_floats() const -> int64_t { return RoundUp(head_dim, 2) * tile_stride(); }
  auto key_rows_floats() const -> int64_t { return keys() * head_stride(); }
};

/// Requires: q is [S, B, A*D], k is [S, B, K*D].
auto AttentionSizesOf(const Plan& plan, ValueId q, ValueId k, int64_t head_dim) -> AttentionSizes;
/// Returns the scratch of an op whose slots have `floats` each.
auto BytesOfSlots(const AttentionSizes& sizes, const Plan& plan, int64_t floats) -> Bytes;
/// Returns how many threads have work: as many as have a slot.
auto PartsOf(const AttentionSizes& sizes, const Plan& plan) -> WorkParts;

/// Begins of the parts of a forward slot, in floats.
struct AttentionParts {
  explicit AttentionParts(const AttentionSizes& sizes) {
    const int64_t rows = sizes.heads_per_kv() * sizes.query_positions();
    values = keys + sizes.key_columns_floats();
    queries = values + sizes.key_rows_floats();
    sums_of_values = queries + rows * sizes.head_stride();
    scores = sums_of_values + rows * sizes.head_stride();
    probabilities = scores + sizes.blocks.attention_query_tile * sizes.tile_stride();
    maxima = probabilities + sizes.blocks.attention_query_tile * sizes.tile_stride();
    sums = maxima + RoundUp(rows, 16);
    corrections = sums + RoundUp(rows, 16);
    total = corrections + RoundUp(sizes.blocks.attention_query_tile, 16);
  }

  int64_t keys = 0;
  int64_t values = 0;
  int64_t queries = 0;
  int64_t sums_of_values = 0;
  int64_t scores = 0;
  int64_t probabilities = 0;
  int64_t maxima = 0;
  int64_t sums = 0;
  int64_t corrections = 0;
  int64_t total = 0;
};

/// Begins of the parts of a backward slot, in floats.
struct AttentionBackwardParts {
  explicit AttentionBackwardParts(const AttentionSizes& sizes)
      : tile(sizes.blocks.attention_backward_query_tile * sizes.tile_stride()) {
    value_columns = key_columns + sizes.key_columns_floats();
    key_rows = value_columns + sizes.key_columns_floats();
    dk = key_rows + sizes.key_rows_floats();
    dv = dk + sizes.key_columns_floats();
    queries = dv + sizes.key_columns_floats();
    query_columns = queries + sizes.blocks.attention_backward_query_tile * sizes.head_stride();
    scores = query_columns + sizes.head_dim * sizes.queries_stride();
    dp = scores + tile;
    gradients = dp + tile;
    pairs = gradients + tile;
    delta = pairs + tile / 2;
    dq = delta + RoundUp(sizes.heads_per_kv() * sizes.sequence, 16);
    total = dq + sizes.heads_per_kv() * sizes.sequence * RoundUp(sizes.head_dim, 16);
  }

  /// Elements of a tile of scores.
  int64_t tile = 0;

  int64_t key_columns = 0;
  int64_t value_columns = 0;
  int64_t key_rows = 0;
  int64_t dk = 0;
  int64_t dv = 0;
  int64_t queries = 0;
  int64_t query_columns = 0;
  int64_t scores = 0;
  int64_t dp = 0;
  /// p and ds in bf16, and one of them in pairs of rows.
  int64_t gradients = 0;
  int64_t pairs = 0;
  int64_t delta = 0;
  int64_t dq = 0;
  int64_t total = 0;
};

}  // namespace shardc
