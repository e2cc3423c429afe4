// Gemm in blocks that stay in cache.
//
// A task (compiler/ops/gemm_cut.h) packs, for each block of terms, the right operand's part, a panel of columns after
// another, and takes the left operand block by block of rows, packed if it is transposed. Sums over the blocks of terms
// gather in c itself, or in scratch. Which blocks there are depends on the sizes alone; tasks are rows and columns of
// blocks, so bits do not depend on the number of threads.
//
// Of x W^T with few rows of x, packing W would cost more than the whole of x and c: then c^T = W x^T is computed, whose
// right operand is x^T, and the sums are transposed on their way into c.
#include "runtime/kernels/cpu/gemm.h"

#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>

#include "compiler/base/check.h"
#include "runtime/kernels/cpu/device.h"
#include "runtime/kernels/cpu/parallel.h"

extern "C" {
// Fortran: column-major.
void sgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k, const float* alpha,
            const float* a, const int* lda, const float* b, const int* ldb, const float* beta, float* c,
            const int* ldc);
// Threads that MKL uses for calls from this thread; returns the number before.
int MKL_Set_Num_Threads_Local(int threads);
}

namespace shardc {

// MKL's setting is one a thread, and ranks may be threads of one process: each thread takes it over when it computes.
static auto UseThreads(int threads) -> void {
  static thread_local int in_use = 0;
  if (threads != in_use) {
    MKL_Set_Num_Threads_Local(threads);
    in_use = threads;
  }
}

static auto ToInt(int64_t size) -> int {
  CHECK(size >= 0 && size <= std::numeric_limits<int>::max(), "a matrix size of {}", size);
  return static_cast<int>(size);
}

/// A row-major c = a b is its column-major c^T = b^T a^T: the operands swap and nothing is copied.
static auto Sgemm(const GemmShape& shape, const float* a, const float* b, float* c, int threads) -> void {
  UseThreads(threads);
  const char transpose_a = shape.problem.transpose_a ? 'T' : 'N';
  const char transpose_b = shape.problem.transpose_b ? 'T' : 'N';
  const int m = ToInt(shape.problem.m);
  const int n = ToInt(shape.problem.n);
  const int k = ToInt(shape.problem.k);
  const int stride_a = ToInt(shape.stride_a);
  const int stride_b = ToInt(shape.stride_b);
  const int stride_c = ToInt(shape.stride_c);
  const float alpha = 1;
  const float beta = shape.adds ? 1 : 0;
  sgemm_(&transpose_b, &transpose_a, &n, &m, &k, &alpha, b, &stride_b, a, &stride_a, &beta, c, &stride_c);
}

static auto Brgemm(const BlockProduct& product, const float* a, const float* b, float* c) -> void {
  at::native::cpublas::brgemm(product.m, product.n, product.k, product.stride_a, product.stride_b, product.stride_c,
                              product.adds, a, b, c, false);
}

/// An odd k counts the zero behind it.
static auto Brgemm(const BlockProduct& product, const BFloat16* a, const BFloat16* b, float* c) -> void {
  at::native::cpublas::brgemm(product.m, product.n, RoundUp(product.k, 2), product.stride_a, product.stride_b,
                              product.stride_c, product.adds, reinterpret_cast<const at::BFloat16*>(a),
                              reinterpret_cast<const at::BFloat16*>(b), c, true);
}

/// Whether brgemm works here: it throws where the processor lacks what it needs.
template <class T>
static auto Works() -> bool {
  constexpr int64_t Size = 16;
  std::array<T, Size * Size> ones;
  for (T& element : ones) {
    Store(element, 1);
  }
  std::array<float, Size * Size> sums{};
  try {
    Brgemm({.m = Size, .n = Size, .k = Size, .stride_a = Size, .stride_b = Size, .stride_c = Size}, ones.data(),
           ones.data(), sums.data());
    at::native::cpublas::brgemm_release(true);
  } catch (const std::exception&) {
    return false;
  }
  return std::all_of(sums.begin(), sums.end(), [](float sum) { return sum == Size; });
}

auto GemmPathOf(const Plan& plan) -> GemmPath {
  const Loops& loops = LoopsOf(plan);
  if (&loops != &Avx512Loops) {
    return {.loops = &loops};
  }
  static const bool f32 = Works<float>();
  static const bool bf16 = Works<BFloat16>();
  return {.loops = &loops, .brgemm_f32 = f32, .brgemm_bf16 = bf16};
}

auto Multiply(const GemmPath& path, const BlockProduct& product, const float* a, const float* b, float* c) -> void {
  if (path.brgemm_f32) {
    Brgemm(product, a, b, c);
    return;
  }
  Sgemm({.problem = {.m = product.m, .n = product.n, .k = product.k},
         .stride_a = product.stride_a,
         .stride_b = product.stride_b,
         .stride_c = product.stride_c,
         .adds = product.adds},
        a, b, c, 1);
}

auto Multiply(const GemmPath& path, const BlockProduct& product, const BFloat16* a, const BFloat16* b, float* c)
    -> void {
  CHECK(path.brgemm_bf16, "a product of bf16 without the instructions for it");
  Brgemm(product, a, b, c);
}

auto EndProducts(const GemmPath& path) -> void {
  if (path.brgemm_bf16) {
    at::native::cpublas::brgemm_release(true);
  }
}

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

  auto Run(int64_t task) -> void {
    row_begin_ = task % cut_.num_row_tasks() * cut_.task_rows;
    row_end_ = std::min(cut_.rows, row_begin_ + cut_.task_rows);
    column_begin_ = task / cut_.num_row_tasks() * cut_.task_columns;
    column_end_ = std::min(cut_.columns, column_begin_ + cut_.task_columns);
    sums_stride_ = RoundUp(column_end_ - column_begin_, 16);
    for (int64_t term = 0; term < cut_.terms; term += cut_.block_terms) {
      const int64_t terms = std::min(cut_.block_terms, cut_.terms - term);
      PackPanels(term, terms);
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
    const bool is_last = term + terms == cut_.terms;
    if (cut_.packs_a) {
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
      Multiply(path_, product, a, Panel(column, terms), sums);
    }
  }

  /// With a single block of k, sums are stored before those of later rows are begun: they start anew at `first`.
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
};

template <class T, class E, class Out>
auto GemmInBlocks(const GemmPath& path, const GemmShape& shape, const T* a, const T* b, Out* c, float* scratch,
                  int64_t slots) -> void {
  constexpr DType Product = std::is_same_v<E, BFloat16> ? DType::BF16 : DType::F32;
  const GemmCut cut = CutGemm(shape.problem, Product, std::min(ComputeThreads(), slots));
  const int64_t floats_of_slot = GemmSlotFloats(shape.problem);
  const int64_t shares = std::min({ComputeThreads(), slots, cut.num_tasks()});
  ParallelShares(shares, [&](int64_t share) {
    Task<T, E, Out> task(path, cut, shape, a, b, c, scratch + share * floats_of_slot);
    for (int64_t i = share; i < cut.num_tasks(); i += shares) {
      task.Run(i);
    }
    if constexpr (std::is_same_v<E, BFloat16>) {
      EndProducts(path);
    }
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
      Sgemm(shape, a, b, c, static_cast<int>(ComputeThreads()));
    }
  } else if (path.brgemm_bf16) {
    GemmInBlocks<BFloat16, BFloat16, Out>(path, shape, a, b, c, scratch, slots);
  } else {
    GemmInBlocks<BFloat16, float, Out>(path, shape, a, b, c, scratch, slots);
  }
}

template auto Gemm(const GemmPath&, const GemmShape&, const float*, const float*, float*, float*, int64_t) -> void;
template auto Gemm(const GemmPath&, const GemmShape&, const BFloat16*, const BFloat16*, BFloat16*, float*, int64_t)
    -> void;
template auto Gemm(const GemmPath&, const GemmShape&, const BFloat16*, const BFloat16*, float*, float*, int64_t)
    -> void;

}  // namespace shardc
