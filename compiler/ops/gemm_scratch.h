// How matmul cuts its work: blocks that are packed in cache, and slots that own scratch. Part of the plan's meaning
// (the scratch buffers have these sizes), so it is decided here, once for compiler and kernels.
//
// With c = op(a) op(b), m x n over k: a task is up to GemmTaskRows x GemmTaskColumns of c. It packs, for each block of
// k, its part of b, and multiplies block after block of rows with it. Where c cannot hold the sums in between (it is
// bf16, or is written transposed), they are gathered in scratch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/ops/scratch_slots.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Rows of c, and columns, of one block product. On Zen 4 and on Sapphire Rapids 128 was within 1 % of the best.
constexpr int64_t GemmBlock = 128;
/// Rows where operands are bf16: matrix units are so fast that the sums have to be near when they are rounded. On
/// Sapphire Rapids 1024 x 256 x 256 ran at 800 GF/s, at 550 with blocks of 128.
constexpr int64_t GemmPairedRows = 32;
/// Terms of the inner sum in one block product, of operands of 4 bytes; twice as many of operands of 2 bytes.
constexpr int64_t GemmDepth = 512;
constexpr int64_t GemmTaskColumns = 2 * GemmBlock;
constexpr int64_t GemmTaskRows = 1024;

/// `size` in equal blocks of at most `most`, each a multiple of 16 or the whole.
constexpr auto GemmBlockOf(int64_t size, int64_t most) -> int64_t {
  const int64_t blocks = CeilDiv(size, most);
  return blocks <= 1 ? size : RoundUp(CeilDiv(size, blocks), 16);
}

struct GemmSizes {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

/// Of op(a), m x k, and op(b), k x n. Requires: the operands have dims.
auto GemmSizesOf(const op::Matmul& op, const Plan& plan) -> GemmSizes;

/// Floats of a slot's three parts; a slot is as great as either order of the product (c, or c transposed) needs.
constexpr auto GemmPanelFloats(int64_t columns, int64_t k) -> int64_t {
  // Panels have rows of a multiple of 16, and an even number of rows.
  return RoundUp(std::min(columns, GemmTaskColumns) + 16, 32) * RoundUp(std::min(k, GemmDepth), 2);
}
/// Elements between packed rows of k terms: a line more than the terms take, since at powers of two the rows would fall
/// into the same few sets of the cache.
constexpr auto GemmRowStride(int64_t k) -> int64_t { return RoundUp(k, 32) + 32; }
constexpr auto GemmRowsFloats(int64_t rows, int64_t k) -> int64_t {
  return std::min(RoundUp(rows, 16), GemmBlock) * GemmRowStride(std::min(k, GemmDepth));
}
constexpr auto GemmSumFloats(int64_t rows, int64_t columns) -> int64_t {
  return std::min(RoundUp(rows, 16), GemmTaskRows) * RoundUp(std::min(columns, GemmTaskColumns), 16);
}
constexpr auto GemmSlotFloats(const GemmSizes& sizes) -> int64_t {
  return std::max(
      GemmPanelFloats(sizes.n, sizes.k) + GemmRowsFloats(sizes.m, sizes.k) + GemmSumFloats(sizes.m, sizes.n),
      GemmPanelFloats(sizes.m, sizes.k) + GemmRowsFloats(sizes.n, sizes.k) + GemmSumFloats(sizes.n, sizes.m));
}

/// `threads` as in plan.run: 0 is open.
constexpr auto GemmSlots(const GemmSizes& sizes, int64_t threads) -> int64_t {
  return ScratchSlots(threads, std::max(CeilDiv(sizes.m, GemmBlock) * CeilDiv(sizes.n, GemmTaskColumns),
                                        CeilDiv(sizes.n, GemmBlock) * CeilDiv(sizes.m, GemmTaskColumns)));
}

}  // namespace shardc
