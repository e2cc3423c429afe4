// Gemm in blocks that stay in cache.
//
// A task (compiler/ops/cpu/gemm_cut.h) packs, for each block of terms, the right operand's part, a panel of columns
// after another, and takes the left operand block by block of rows, packed if it is transposed. Sums over the blocks of
// terms gather in c itself, or in scratch. Which blocks there are depends on the sizes alone; tasks are rows and
// columns of blocks, so bits do not depend on the number of threads, nor on which thread takes which task.
//
// Of x W^T with few rows of x, packing W would cost more than the whole of x and c: then c^T = W x^T is computed, whose
// right operand is x^T, and the sums are transposed on their way into c.
#include "runtime/kernels/cpu/gemm.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "compiler/base/check.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc {

namespace {

template <class T, class E, class Out>
class Task {
 public:
  Task(const GemmPath& path, const GemmCut& cut, const GemmShape& shape, const T* a, const T* b, Out* c, float* scratch)
      : path_(path),
        cut_(cut),
        a_(cut.transposes_c ? b : a),
        b_(cut.transposes_c ? a : b),
        c_(c),
        stride_a_(cut.transposes_c ? shape.stride_b : shape.stride_a),
        stride_b_(cut.transposes_c ? shape.stride_a : shape.stride_b),
        stride_c_(shape.stride_c),
        adds_(shape.adds),
        panels_(reinterpret_cast<E*>(scratch)),
        rows_(reinterpret_cast<E*>(scratch + cut.panels_floats())),
        sums_(scratch + cut.panels_floats() + cut.rows_floats()) {}

  /// Adds the block products of a task that `products` lacks, and computes nothing.
  auto Collect(int64_t task, std::vector<BlockProduct>& products) -> void {
    collected_ = &products;
    Run(task);
    collected_ = nullptr;
  }

  /// One product of whatever the operands' memory holds.
  auto Try(const BlockProduct& product, float* sums) const -> void {
    const E* a = rows_;
    if constexpr (std::is_same_v<T, E>) {
      a = cut_.packs_a ? rows_ : a_;
    }
    Multiply(path_, product, a, panels_, sums);
  }

  auto Run(int64_t task) -> void {
    row_begin_ = task % cut_.num_row_tasks() * cut_.task_rows;
    row_end_ = std::min(cut_.rows, row_begin_ + cut_.task_rows);
    column_begin_ = task / cut_.num_row_tasks() * cut_.task_columns;
    column_end_ = std::min(cut_.columns, column_begin_ + cut_.task_columns);
    sums_stride_ = RoundUp(column_end_ - column_begin_, 16);
    for (int64_t term = 0; term < cut_.terms; term += cut_.block_terms) {
      const int64_t terms = std::min(cut_.block_terms, cut_.terms - term);
      if (collected_ == nullptr) {
        PackPanels(term, terms);
      }
      for (int64_t row = row_begin_; row < row_end_; row += cut_.group) {
        RunGroup(row, std::min(row_end_, row + cut_.group), term, terms);
      }
    }
  }

 private:
  /// The panel that begins at `column`: all but the last are equally wide.
  auto Panel(int64_t column, int64_t terms) const -> E* {
    return panels_ +
           (column - column_begin_) / cut_.block_columns * RoundUp(cut_.block_columns, 16) * RoundUp(terms, 2);
  }
  auto PanelStride(int64_t column) const -> int64_t {
    return RoundUp(std::min(cut_.block_columns, column_end_ - column), 16);
  }

  auto PackPanels(int64_t term, int64_t terms) -> void {
    const auto& loops = path_.loops->Of<T, E>();
    for (int64_t column = column_begin_; column < column_end_; column += cut_.block_columns) {
      const int64_t columns = std::min(cut_.block_columns, column_end_ - column);
      if (cut_.transpose_b) {
        loops.PackRightTransposed(b_ + column * stride_b_ + term, stride_b_, terms, columns, Panel(column, terms),
                                  PanelStride(column));
      } else {
        loops.PackRight(b_ + term * stride_b_ + column, stride_b_, terms, columns, Panel(column, terms),
                        PanelStride(column));
      }
    }
  }

  /// The rows [begin, end), some blocks.
  auto RunGroup(int64_t begin, int64_t end, int64_t term, int64_t terms) -> void {
    const bool is_last = term + terms == cut_.terms && collected_ == nullptr;
    if (cut_.packs_a && collected_ == nullptr) {
      PackRows(begin, end - begin, term, terms);
    }
    for (int64_t row = begin; row < end; row += cut_.block_rows) {
      const int64_t rows = std::min(cut_.block_rows, end - row);
      MultiplyRows(row, rows, begin, term, terms);
      if (is_last && !cut_.sums_in_c && !cut_.transposes_c) {
        path_.loops->Of<Out>().StoreBlock(Sums(row, row), sums_stride_, rows, column_end_ - column_begin_, adds_,
                                          c_ + row * stride_c_ + column_begin_, stride_c_);
      }
    }
    if (is_last && cut_.transposes_c) {
      path_.loops->Of<Out>().StoreBlockTransposed(Sums(begin, begin), sums_stride_, end - begin,
                                                  column_end_ - column_begin_, adds_,
                                                  c_ + column_begin_ * stride_c_ + begin, stride_c_);
    }
  }

  auto PackRows(int64_t row, int64_t rows, int64_t term, int64_t terms) -> void {
    const auto& loops = path_.loops->Of<T, E>();
    if (cut_.transpose_a) {
      loops.PackLeftTransposed(a_ + term * stride_a_ + row, stride_a_, rows, terms, rows_, GemmRowStride(terms));
    } else {
      loops.PackLeft(a_ + row * stride_a_ + term, stride_a_, rows, terms, rows_, GemmRowStride(terms));
    }
  }

  auto MultiplyRows(int64_t row, int64_t rows, int64_t group_begin, int64_t term, int64_t terms) -> void {
    const E* a = nullptr;
    int64_t stride_a = stride_a_;
    if (cut_.packs_a) {
      stride_a = GemmRowStride(terms);
      a = rows_ + (row - group_begin) * stride_a;
    } else if constexpr (std::is_same_v<T, E>) {
      a = a_ + row * stride_a_ + term;
    }
    for (int64_t column = column_begin_; column < column_end_; column += cut_.block_columns) {
      BlockProduct product{.m = rows,
                           .n = std::min(cut_.block_columns, column_end_ - column),
                           .k = terms,
                           .stride_a = stride_a,
                           .stride_b = PanelStride(column),
                           .stride_c = sums_stride_,
                           .adds = term > 0};
      float* sums = Sums(row, cut_.transposes_c ? group_begin : row) + (column - column_begin_);
      if constexpr (std::is_same_v<Out, float>) {
        if (cut_.sums_in_c) {
          product.stride_c = stride_c_;
          product.adds = product.adds || adds_;
          sums = c_ + row * stride_c_ + column;
        }
      }
      if (collected_ == nullptr) {
        Multiply(path_, product, a, Panel(column, terms), sums);
      } else if (std::find(collected_->begin(), collected_->end(), product) == collected_->end()) {
        collected_->push_back(product);
      }
    }
  }

  /// With a single block of k, sums are stored before those of later rows are begun: they start again at `first`.
  auto Sums(int64_t row, int64_t first) const -> float* {
    return sums_ + (row - (cut_.block_terms == cut_.terms ? first : row_begin_)) * sums_stride_;
  }

  const GemmPath& path_;
  const GemmCut& cut_;
  const T* a_;
  const T* b_;
  Out* c_;
  int64_t stride_a_;
  int64_t stride_b_;
  int64_t stride_c_;
  bool adds_;
  E* panels_;
  E* rows_;
  float* sums_;
  int64_t row_begin_ = 0;
  int64_t row_end_ = 0;
  int64_t column_begin_ = 0;
  int64_t column_end_ = 0;
  int64_t sums_stride_ = 0;
  std::vector<BlockProduct>* collected_ = nullptr;
};

template <class E>
constexpr DType ProductType = std::is_same_v<E, BFloat16> ? DType::BF16 : DType::F32;

template <class T, class E, class Out>
auto GemmInBlocks(const GemmPath& path, const GemmShape& shape, const T* a, const T* b, Out* c, float* scratch,
                  int64_t slots) -> void {
  const GemmCut cut = CutGemm(shape.problem, ProductType<E>, std::min(ComputeThreads(), slots));
  const int64_t floats_of_slot = GemmSlotFloats(shape.problem);
  ParallelTasks(cut.num_tasks(), slots, [&](int64_t slot, Tasks& tasks) {
    Task<T, E, Out> task(path, cut, shape, a, b, c, scratch + slot * floats_of_slot);
    for (int64_t i = tasks.Next(); i >= 0; i = tasks.Next()) {
      task.Run(i);
    }
    if constexpr (std::is_same_v<E, BFloat16>) {
      EndProducts(path);
    }
  });
}

template <class T, class E, class Out>
auto PrepareBlocks(const GemmPath& path, const GemmShape& shape, const T* a, const T* b, float* scratch, int64_t slots)
    -> void {
  const GemmCut cut = CutGemm(shape.problem, ProductType<E>, std::min(ComputeThreads(), slots));
  std::vector<BlockProduct> products;
  Task<T, E, Out> task(path, cut, shape, a, b, static_cast<Out*>(nullptr), scratch);
  for (int64_t i = 0; i < cut.num_tasks(); ++i) {
    task.Collect(i, products);
  }
  const int64_t floats_of_slot = GemmSlotFloats(shape.problem);
  OnEachThread(std::min(slots, cut.num_tasks()), [&](int64_t slot, int64_t) {
    const Task<T, E, Out> of_slot(path, cut, shape, a, b, nullptr, scratch + slot * floats_of_slot);
    for (const BlockProduct& product : products) {
      const auto sums = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(product.m * product.stride_c));
      of_slot.Try(product, sums.get());
    }
    if constexpr (std::is_same_v<E, BFloat16>) {
      EndProducts(path);
    }
  });
}

auto SgemmInRanges(const GemmShape& shape, const float* a, const float* b, float* c) -> void {
  const bool cuts_rows = shape.problem.m >= shape.problem.n;
  const int64_t size = cuts_rows ? shape.problem.m : shape.problem.n;
  const int64_t range_size = GemmRangeSize(shape.problem);
  ParallelTasks(NumGemmRanges(shape.problem), ComputeThreads(), [&](int64_t, Tasks& tasks) {
    for (int64_t i = tasks.Next(); i >= 0; i = tasks.Next()) {
      const int64_t begin = i * range_size;
      GemmShape part = shape;
      (cuts_rows ? part.problem.m : part.problem.n) = std::min(range_size, size - begin);
      if (cuts_rows) {
        Sgemm(part, a + begin * (shape.problem.transpose_a ? 1 : shape.stride_a), b, c + begin * shape.stride_c);
      } else {
        Sgemm(part, a, b + begin * (shape.problem.transpose_b ? shape.stride_b : 1), c + begin);
      }
    }
  });
}

/// Makes MKL allocate the buffers of each thread that may compute a range.
auto PrepareSgemm(const GemmShape& shape, const float* a, const float* b) -> void {
  GemmShape part = shape;
  part.problem.m = std::min(shape.problem.blocks.gemm_least_range, shape.problem.m);
  part.problem.n = std::min(shape.problem.blocks.gemm_least_range, shape.problem.n);
  part.stride_c = part.problem.n;
  part.adds = false;
  OnEachThread(NumGemmRanges(shape.problem), [&](int64_t, int64_t) {
    const auto sums = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(part.problem.m * part.stride_c));
    Sgemm(part, a, b, sums.get());
  });
}

}  // namespace

template <class T, class Out>
auto Gemm(const GemmPath& path, const GemmShape& shape, const T* a, const T* b, Out* c, float* scratch, int64_t slots)
    -> void {
  CHECK(shape.problem.k > 0 && slots > 0, "a product of {} terms, {} slots", shape.problem.k, slots);
  if constexpr (std::is_same_v<T, float>) {
    if (path.brgemm_f32) {
      GemmInBlocks<float, float, float>(path, shape, a, b, c, scratch, slots);
    } else {
      SgemmInRanges(shape, a, b, c);
    }
  } else if (path.brgemm_bf16) {
    GemmInBlocks<BFloat16, BFloat16, Out>(path, shape, a, b, c, scratch, slots);
  } else {
    GemmInBlocks<BFloat16, float, Out>(path, shape, a, b, c, scratch, slots);
  }
}

template <class T, class Out>
auto PrepareGemm(const GemmPath& path, const GemmShape& shape, const T* a, const T* b, float* scratch, int64_t slots)
    -> void {
  if (ComputeThreads() == 1) {
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (path.brgemm_f32) {
      PrepareBlocks<float, float, float>(path, shape, a, b, scratch, slots);
    } else {
      PrepareSgemm(shape, a, b);
    }
  } else if (path.brgemm_bf16) {
    PrepareBlocks<BFloat16, BFloat16, Out>(path, shape, a, b, scratch, slots);
  } else {
    PrepareBlocks<BFloat16, float, Out>(path, shape, a, b, scratch, slots);
  }
}

template auto PrepareGemm<float, float>(const GemmPath&, const GemmShape&, const float*, const float*, float*, int64_t)
    -> void;
template auto PrepareGemm<BFloat16, BFloat16>(const GemmPath&, const GemmShape&, const BFloat16*, const BFloat16*,
                                              float*, int64_t) -> void;
template auto PrepareGemm<BFloat16, float>(const GemmPath&, const GemmShape&, const BFloat16*, const BFloat16*, float*,
                                           int64_t) -> void;
template auto Gemm(const GemmPath&, const GemmShape&, const float*, const float*, float*, float*, int64_t) -> void;
template auto Gemm(const GemmPath&, const GemmShape&, const BFloat16*, const BFloat16*, BFloat16*, float*, int64_t)
    -> void;
template auto Gemm(const GemmPath&, const GemmShape&, const BFloat16*, const BFloat16*, float*, float*, int64_t)
    -> void;

}  // namespace shardc
