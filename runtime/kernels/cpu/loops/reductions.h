// Reductions over the elements of a row, in a fixed order.
#pragma once

#include <cstdint>
#include <limits>

#include "compiler/base/bfloat16.h"

namespace shardc::SHARDC_LOOPS {

/// Terms that are summed in f32 before they go into an f64 total: short enough to keep 6 digits, long enough to be
/// quick.
constexpr int64_t SumBlock = 256;

/// For sums over rows, column by column. Columns whose sums stay in registers and first-level cache, and rows that are
/// summed in f32 before they go into f64 totals.
constexpr int64_t ColumnBlock = 128;
constexpr int64_t RowBlock = 32;

/// The sum of term(i), 0 <= i < n, in fixed order: blocks in f32, their total in f64. A term captures its pointers by
/// value: one that is captured by reference is loaded again for each element, and the loop does not vectorise.
template <class Term>
[[gnu::always_inline]] inline auto Sum(int64_t n, const Term& term) -> double {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += SumBlock) {
    const int64_t end = n - begin < SumBlock ? n : begin + SumBlock;
    float part = 0;
#pragma omp simd reduction(+ : part)
    for (int64_t i = begin; i < end; ++i) {
      part += term(i);
    }
    total += static_cast<double>(part);
  }
  return total;
}

/// The greatest of n > 0 elements. A NaN among them may be passed over: what is computed with it is NaN anyway.
template <class T>
[[gnu::always_inline]] inline auto Max(const T* x, int64_t n) -> float {
  float greatest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : greatest)
  for (int64_t i = 0; i < n; ++i) {
    const float value = Load(x[i]);
    greatest = value > greatest ? value : greatest;
  }
  return greatest;
}

}  // namespace shardc::SHARDC_LOOPS
