#include "compiler/ops/cpu/gemm_cut.h"

#include "compiler/ops/cpu/scratch_slots.h"
#include "compiler/ops/op_support.h"

namespace shardc {

/// Packing an element costs about as much as storing one transposed.
static auto IsBetterTransposed(const GemmProblem& problem) -> bool {
  return problem.transpose_b && !problem.transpose_a && problem.m * (problem.k + problem.n) < problem.n * problem.k;
}

/// `size` in equal blocks of at most `most`, each a multiple of 16 or the whole.
static auto BlockOf(int64_t size, int64_t most) -> int64_t {
  const int64_t blocks = CeilDiv(size, most);
  return blocks <= 1 ? size : RoundUp(CeilDiv(size, blocks), 16);
}

auto CutGemm(const GemmProblem& problem, DType product, int64_t threads) -> GemmCut {
  GemmCut cut{.transposes_c = IsBetterTransposed(problem),
              .rows = problem.m,
              .columns = problem.n,
              .terms = problem.k,
              .transpose_a = problem.transpose_a,
              .transpose_b = problem.transpose_b,
              .product = product};
  if (cut.transposes_c) {
    std::swap(cut.rows, cut.columns);
    cut.transpose_a = !problem.transpose_b;
    cut.transpose_b = !problem.transpose_a;
  }
  const bool is_paired = product == DType::BF16;
  cut.packs_a = cut.transpose_a || problem.operands != product || (is_paired && cut.terms % 2 != 0);
  cut.sums_in_c = !cut.transposes_c && problem.out == DType::F32;
  const CpuBlocks& blocks = problem.blocks;
  const int64_t depth = is_paired ? 2 * blocks.gemm_depth : blocks.gemm_depth;
  cut.block_rows = BlockOf(cut.rows, is_paired ? blocks.gemm_paired_rows : blocks.gemm_block);
  cut.block_terms = BlockOf(cut.terms, depth);
  // Rows are packed once per task: a shallow product takes as many columns as its panels have scratch for.
  const int64_t panels = std::clamp(2 * depth / cut.block_terms, blocks.gemm_task_panels, 4 * blocks.gemm_task_panels);
  cut.task_columns = BlockOf(cut.columns, panels * blocks.gemm_block);
  cut.block_columns = BlockOf(cut.task_columns, blocks.gemm_block);
  cut.group = blocks.gemm_block / cut.block_rows * cut.block_rows;
  cut.task_rows = blocks.gemm_task_rows / cut.block_rows * cut.block_rows;
  const int64_t row_tasks = CeilDiv(threads, CeilDiv(cut.columns, cut.task_columns));
  if (cut.num_row_tasks() < row_tasks) {
    cut.task_rows = RoundUp(CeilDiv(cut.rows, row_tasks), cut.block_rows);
  }
  return cut;
}

auto GemmSlots(const GemmProblem& problem, int64_t threads) -> int64_t {
  const GemmCut cut = CutGemm(problem, DType::F32, 1);
  return ScratchSlots(threads, CeilDiv(cut.rows, problem.blocks.gemm_block) * CeilDiv(cut.columns, cut.task_columns));
}

auto GemmSlotFloats(const GemmProblem& problem) -> int64_t {
  // More threads cut rows shorter.
  const int64_t floats = CutGemm(problem, DType::F32, 1).slot_floats();
  return problem.operands == DType::F32 ? floats : std::max(floats, CutGemm(problem, DType::BF16, 1).slot_floats());
}

}  // namespace shardc
