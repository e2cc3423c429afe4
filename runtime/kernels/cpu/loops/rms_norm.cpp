// x_NH, y_NH, dy_NH, dx_NH: N rows, H hidden; weight_H, dweight_H; rstd_N.
// Source: Zhang, Sennrich 2019, "Root Mean Square Layer Normalization", eq. 4.
#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/loops/reductions.h"

namespace shardc::SHARDC_LOOPS {

template <class T, class R>
auto RmsNorm(const R* x_NH, const T* weight_H, int64_t rows, int64_t hidden, double eps, T* y_NH, float* rstd_N)
    -> void {
  for (int64_t row = 0; row < rows; ++row) {
    const R* const x_H = x_NH + row * hidden;
    T* const y_H = y_NH + row * hidden;
    const double squares = Sum(hidden, [=](int64_t h) {
      const float value = Load(x_H[h]);
      return value * value;
    });
    const float scale = static_cast<float>(1.0 / __builtin_sqrt(squares / static_cast<double>(hidden) + eps));
    rstd_N[row] = scale;
#pragma omp simd
    for (int64_t h = 0; h < hidden; ++h) {
      Store(y_H[h], Load(x_H[h]) * scale * Load(weight_H[h]));
    }
  }
}
INSTANTIATE_RESIDUAL_LOOP(RmsNorm)

/// dx = rstd (g - x' mean(g x')) with x' = x rstd and g = dy weight, written or added.
template <class T, class R>
auto RmsNormBackward(const T* dy_NH, const R* x_NH, const T* weight_H, const float* rstd_N, int64_t rows,
                     int64_t hidden, bool adds, R* dx_NH) -> void {
  for (int64_t row = 0; row < rows; ++row) {
    const T* const dy_H = dy_NH + row * hidden;
    const R* const x_H = x_NH + row * hidden;
    R* const dx_H = dx_NH + row * hidden;
    const float scale = rstd_N[row];
    const double dot = Sum(hidden, [=](int64_t h) { return Load(dy_H[h]) * Load(weight_H[h]) * Load(x_H[h]); });
    const float mean = static_cast<float>(dot / static_cast<double>(hidden)) * scale * scale;
    if (adds) {
#pragma omp simd
      for (int64_t h = 0; h < hidden; ++h) {
        const float g = Load(dy_H[h]) * Load(weight_H[h]);
        Store(dx_H[h], Load(dx_H[h]) + scale * (g - Load(x_H[h]) * mean));
      }
    } else {
#pragma omp simd
      for (int64_t h = 0; h < hidden; ++h) {
        const float g = Load(dy_H[h]) * Load(weight_H[h]);
        Store(dx_H[h], scale * (g - Load(x_H[h]) * mean));
      }
    }
  }
}
INSTANTIATE_RESIDUAL_LOOP(RmsNormBackward)

/// dweight = sum over rows of dy x', for the columns [begin, end): rows in order, blocks of them summed in f32, the
/// blocks in f64, so that neither the number of threads nor that of rows costs digits.
template <class T, class R>
auto RmsNormBackwardWeight(const T* dy_NH, const R* x_NH, const float* rstd_N, int64_t rows, int64_t hidden,
                           int64_t begin, int64_t end, bool adds, float* dweight_H) -> void {
  for (int64_t first = begin; first < end; first += ColumnBlock) {
    const int64_t width = end - first < ColumnBlock ? end - first : ColumnBlock;
    double total[ColumnBlock] = {};
    for (int64_t row_begin = 0; row_begin < rows; row_begin += RowBlock) {
      const int64_t row_end = rows - row_begin < RowBlock ? rows : row_begin + RowBlock;
      float part[ColumnBlock] = {};
      for (int64_t row = row_begin; row < row_end; ++row) {
        const T* const dy_C = dy_NH + row * hidden + first;
        const R* const x_C = x_NH + row * hidden + first;
        const float scale = rstd_N[row];
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) {
          part[c] += Load(dy_C[c]) * (Load(x_C[c]) * scale);
        }
      }
      for (int64_t c = 0; c < width; ++c) {
        total[c] += static_cast<double>(part[c]);
      }
    }
    for (int64_t c = 0; c < width; ++c) {
      dweight_H[first + c] = (adds ? dweight_H[first + c] : 0.0F) + static_cast<float>(total[c]);
    }
  }
}
INSTANTIATE_RESIDUAL_LOOP(RmsNormBackwardWeight)

}  // namespace shardc::SHARDC_LOOPS
