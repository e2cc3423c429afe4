// How matmul cuts its work on a device of the family Cpu: blocks that are packed in cache, and slots that own scratch.
// Part of the plan's meaning (the scratch buffers have these sizes, and bits depend on the cuts), so it is decided
// here, once for compiler and kernels. The sizes of blocks are those of the device (schemas/devices.def).
//
// A task is a part of c, some hundred columns wide. For each block of the inner sum it packs its part of the right
// operand, and multiplies block after block of rows with it. Where c cannot hold the sums in between (it is bf16, or is
// written transposed), they are gathered in scratch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/base/devices.h"
#include "compiler/base/units.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns the elements between packed rows of `terms`: a line more than these take, since at powers of two the rows
/// would fall into the same few sets of the cache.
constexpr auto GemmRowStride(int64_t terms) -> int64_t { return RoundUp(terms, 32) + 32; }

/// c (m x n) = op(a) op(b), with op(a) m x k and op(b) k x n.
struct GemmProblem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  /// The type of a and b.
  DType operands = DType::F32;
  DType out = DType::F32;
  /// The blocks of the plan's device.
  CpuBlocks blocks;
};

/// Requires: the operands have dims.
auto GemmProblemOf(const op::Matmul& op, const Plan& plan) -> GemmProblem;
auto GemmProblemOf(const op::MatmulAdd& op, const Plan& plan) -> GemmProblem;

/// Returns how many rows or columns a range has. The longer side of c is cut into ranges by the sizes alone: a
/// library's sums may differ in bits with the size of c.
constexpr auto GemmRangeSize(const GemmProblem& problem) -> int64_t {
  return RoundUp(std::max(problem.blocks.gemm_least_range,
                          CeilDiv(std::max(problem.m, problem.n), problem.blocks.gemm_most_ranges)),
                 16);
}
constexpr auto NumGemmRanges(const GemmProblem& problem) -> int64_t {
  return CeilDiv(std::max(problem.m, problem.n), GemmRangeSize(problem));
}

struct GemmCut {
  /// c^T = op(b)^T op(a)^T is computed, and its sums are transposed on their way into c: of the rest, rows, columns, a
  /// and b are those of that product.
  bool transposes_c = false;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t terms = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  /// Element type of block products: bf16 is widened if the device has no products of bf16.
  DType product = DType::F32;
  bool packs_a = false;
  bool sums_in_c = false;
  int64_t block_rows = 0;
  int64_t block_columns = 0;
  int64_t block_terms = 0;
  /// Rows that are packed, or stored transposed, at once: some blocks. Fewer would leave lines of memory half used.
  int64_t group = 0;
  /// Some blocks each.
  int64_t task_rows = 0;
  int64_t task_columns = 0;

  auto num_row_tasks() const -> int64_t { return CeilDiv(rows, task_rows); }
  auto num_tasks() const -> int64_t { return num_row_tasks() * CeilDiv(columns, task_columns); }

  /// Returns the elements of a packed panel of block_columns columns, and the floats of a slot's parts, in whole lines
  /// of cache.
  auto panel_elements() const -> int64_t { return RoundUp(block_columns, 16) * RoundUp(block_terms, 2); }
  auto panels_floats() const -> int64_t { return LinesOf(CeilDiv(task_columns, block_columns) * panel_elements()); }
  auto rows_floats() const -> int64_t {
    return packs_a ? LinesOf(std::min(group, rows) * GemmRowStride(block_terms)) : 0;
  }
  auto sums_floats() const -> int64_t {
    return sums_in_c ? 0 : std::min(sums_rows(), rows) * RoundUp(task_columns, 16);
  }
  auto slot_floats() const -> int64_t { return panels_floats() + rows_floats() + sums_floats(); }

  /// Sums over several blocks of terms stay until the last; over one, until their rows are stored.
  auto sums_rows() const -> int64_t { return block_terms < terms ? task_rows : transposes_c ? group : block_rows; }

 private:
  auto LinesOf(int64_t elements) const -> int64_t { return RoundUp(CeilDiv(elements * SizeOf(product), 4), 16); }
};

/// Cuts a product for `threads` that work on it at once.
auto CutGemm(const GemmProblem& problem, DType product, int64_t threads) -> GemmCut;

/// Returns the slots that the plan has scratch for; `threads` as in plan.run: 0 is open.
auto GemmSlots(const GemmProblem& problem, int64_t threads) -> int64_t;
/// Returns the floats of one slot, whatever the number of threads and the type of the block products.
auto GemmSlotFloats(const GemmProblem& problem) -> int64_t;

}  // namespace shardc
