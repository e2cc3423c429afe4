// x_NH, y_NH, dy_NH, dx_NH: N rows, H hidden; weight_H, bias_H, dweight_H, dbias_H; mean_N, rstd_N.
//
// The statistics of a row take three passes: a number near the mean, whose sum in f32 is off by the size of x; the rest
// of the mean, from differences to that number; the squares of the differences to both. So the sums hold numbers of the
// size of the deviation, however far from 0 the row lies, and a row of one number has no deviation at all.
//
// Source: Ba, Kiros, Hinton 2016, "Layer Normalization", eq. 4; shifted data and squares after the mean: Chan, Golub,
// LeVeque 1983, "Algorithms for Computing the Sample Variance: Analysis and Recommendations".
#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/loops/reductions.h"

namespace shardc::SHARDC_LOOPS {

template <class T, class R>
auto LayerNorm(const R* x_NH, const T* weight_H, const T* bias_H, int64_t rows, int64_t hidden, double eps, T* y_NH,
               float* mean_N, float* rstd_N) -> void {
  for (int64_t row = 0; row < rows; ++row) {
    const R* const x_H = x_NH + row * hidden;
    T* const y_H = y_NH + row * hidden;
    const auto size = static_cast<double>(hidden);
    const float near = static_cast<float>(Sum(hidden, [=](int64_t h) { return Load(x_H[h]); }) / size);
    const double offset = Sum(hidden, [=](int64_t h) { return Load(x_H[h]) - near; }) / size;
    const float rest = static_cast<float>(offset);
    const double squares = Sum(hidden, [=](int64_t h) {
      const float value = Load(x_H[h]) - near - rest;
      return value * value;
    });
    const float scale = static_cast<float>(1.0 / __builtin_sqrt(squares / size + eps));
    mean_N[row] = static_cast<float>(static_cast<double>(near) + offset);
    rstd_N[row] = scale;
#pragma omp simd
    for (int64_t h = 0; h < hidden; ++h) {
      Store(y_H[h], (Load(x_H[h]) - near - rest) * scale * Load(weight_H[h]) + Load(bias_H[h]));
    }
  }
}
INSTANTIATE_RESIDUAL_LOOP(LayerNorm)

/// dx = rstd (g - mean(g) - x' mean(g x')) with x' = (x - mean) rstd and g = dy weight, written or added.
template <class T, class R>
auto LayerNormBackward(const T* dy_NH, const R* x_NH, const T* weight_H, const float* mean_N, const float* rstd_N,
                       int64_t rows, int64_t hidden, bool adds, R* dx_NH) -> void {
  for (int64_t row = 0; row < rows; ++row) {
    const T* const dy_H = dy_NH + row * hidden;
    const R* const x_H = x_NH + row * hidden;
    R* const dx_H = dx_NH + row * hidden;
    const float center = mean_N[row];
    const float scale = rstd_N[row];
    const double sum = Sum(hidden, [=](int64_t h) { return Load(dy_H[h]) * Load(weight_H[h]); });
    const double dot =
        Sum(hidden, [=](int64_t h) { return Load(dy_H[h]) * Load(weight_H[h]) * ((Load(x_H[h]) - center) * scale); });
    const float g_mean = static_cast<float>(sum / static_cast<double>(hidden));
    const float dot_mean = static_cast<float>(dot / static_cast<double>(hidden));
    if (adds) {
#pragma omp simd
      for (int64_t h = 0; h < hidden; ++h) {
        const float g = Load(dy_H[h]) * Load(weight_H[h]);
        Store(dx_H[h], Load(dx_H[h]) + scale * (g - g_mean - (Load(x_H[h]) - center) * scale * dot_mean));
      }
    } else {
#pragma omp simd
      for (int64_t h = 0; h < hidden; ++h) {
        const float g = Load(dy_H[h]) * Load(weight_H[h]);
        Store(dx_H[h], scale * (g - g_mean - (Load(x_H[h]) - center) * scale * dot_mean));
      }
    }
  }
}
INSTANTIATE_RESIDUAL_LOOP(LayerNormBackward)

/// dweight = sum over rows of dy x' and dbias = sum over rows of dy, for the columns [begin, end): rows in order,
/// blocks of them summed in f32, the blocks in f64, so that neither the number of threads nor that of rows costs
/// digits.
template <class T, class R>
auto LayerNormBackwardParameters(const T* dy_NH, const R* x_NH, const float* mean_N, const float* rstd_N, int64_t rows,
                                 int64_t hidden, int64_t begin, int64_t end, bool adds_dweight, bool adds_dbias,
                                 float* dweight_H, float* dbias_H) -> void {
  for (int64_t first = begin; first < end; first += ColumnBlock) {
    const int64_t width = end - first < ColumnBlock ? end - first : ColumnBlock;
    double weight_total[ColumnBlock] = {};
    double bias_total[ColumnBlock] = {};
    for (int64_t row_begin = 0; row_begin < rows; row_begin += RowBlock) {
      const int64_t row_end = rows - row_begin < RowBlock ? rows : row_begin + RowBlock;
      float weight_part[ColumnBlock] = {};
      float bias_part[ColumnBlock] = {};
      for (int64_t row = row_begin; row < row_end; ++row) {
        const T* const dy_C = dy_NH + row * hidden + first;
        const R* const x_C = x_NH + row * hidden + first;
        const float center = mean_N[row];
        const float scale = rstd_N[row];
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) {
          const float dy = Load(dy_C[c]);
          weight_part[c] += dy * ((Load(x_C[c]) - center) * scale);
          bias_part[c] += dy;
        }
      }
      for (int64_t c = 0; c < width; ++c) {
        weight_total[c] += static_cast<double>(weight_part[c]);
        bias_total[c] += static_cast<double>(bias_part[c]);
      }
    }
    for (int64_t c = 0; c < width; ++c) {
      dweight_H[first + c] = (adds_dweight ? dweight_H[first + c] : 0.0F) + static_cast<float>(weight_total[c]);
      dbias_H[first + c] = (adds_dbias ? dbias_H[first + c] : 0.0F) + static_cast<float>(bias_total[c]);
    }
  }
}
INSTANTIATE_RESIDUAL_LOOP(LayerNormBackwardParameters)

}  // namespace shardc::SHARDC_LOOPS
