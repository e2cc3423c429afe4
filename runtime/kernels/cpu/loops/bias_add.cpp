// y_NH, dy_NH: N rows, H columns; bias_H, sums_H.
#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/loops/reductions.h"

namespace shardc::SHARDC_LOOPS {

template <class T>
auto BiasAdd(const T* bias_H, int64_t rows, int64_t width, T* y_NH) -> void {
  for (int64_t row = 0; row < rows; ++row) {
    T* const y_H = y_NH + row * width;
#pragma omp simd
    for (int64_t h = 0; h < width; ++h) {
      Store(y_H[h], Load(y_H[h]) + Load(bias_H[h]));
    }
  }
}
INSTANTIATE_ELEMENT_LOOP(BiasAdd)

/// For the columns [begin, end): rows in order, blocks of them summed in f32, the blocks in f64, so that neither the
/// number of threads nor that of rows costs digits.
template <class T>
auto SumRows(const T* x_NH, int64_t rows, int64_t width, int64_t begin, int64_t end, bool adds, float* sums_H) -> void {
  for (int64_t first = begin; first < end; first += ColumnBlock) {
    const int64_t columns = end - first < ColumnBlock ? end - first : ColumnBlock;
    double total[ColumnBlock] = {};
    for (int64_t row_begin = 0; row_begin < rows; row_begin += RowBlock) {
      const int64_t row_end = rows - row_begin < RowBlock ? rows : row_begin + RowBlock;
      float part[ColumnBlock] = {};
      for (int64_t row = row_begin; row < row_end; ++row) {
        const T* const x_C = x_NH + row * width + first;
#pragma omp simd
        for (int64_t c = 0; c < columns; ++c) {
          part[c] += Load(x_C[c]);
        }
      }
      for (int64_t c = 0; c < columns; ++c) {
        total[c] += static_cast<double>(part[c]);
      }
    }
    for (int64_t c = 0; c < columns; ++c) {
      sums_H[first + c] = (adds ? sums_H[first + c] : 0.0F) + static_cast<float>(total[c]);
    }
  }
}
INSTANTIATE_ELEMENT_LOOP(SumRows)

}  // namespace shardc::SHARDC_LOOPS
