// rms_norm_backward. With x' = x rstd and g = dy weight: dx = rstd (g - x' mean(g x')), dweight = sum over rows of dy
// x'.
//
// dx goes row by row. dweight goes column by column, in its own pass over dy and x: rows in order, blocks of them
// summed in f32, the blocks in f64, so that neither the number of threads nor that of rows costs digits. x_NH, dy_NH,
// dx_NH: N rows, H hidden; weight_H, dweight_H; rstd_N.
#include <algorithm>

#include "runtime/kernels/cpu/operand.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/reductions.h"

namespace shardc {

// A stretch of columns whose sums stay in registers and first-level cache.
constexpr int64_t ColumnBlock = 128;
constexpr int64_t RowBlock = 32;

template <class T>
static auto WeightGradient(const T* dy_NH, const T* x_NH, const float* rstd_N, int64_t rows, int64_t hidden,
                           Interval columns, bool adds, float* dweight_H) -> void {
  for (int64_t first = columns.begin; first < columns.end; first += ColumnBlock) {
    const int64_t width = std::min(ColumnBlock, columns.end - first);
    double total[ColumnBlock] = {};
    for (int64_t row_begin = 0; row_begin < rows; row_begin += RowBlock) {
      const int64_t row_end = std::min(rows, row_begin + RowBlock);
      float part[ColumnBlock] = {};
      for (int64_t row = row_begin; row < row_end; ++row) {
        const T* const dy_C = dy_NH + row * hidden + first;
        const T* const x_C = x_NH + row * hidden + first;
        const float scale = rstd_N[row];
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) {
          part[c] += static_cast<float>(dy_C[c]) * (static_cast<float>(x_C[c]) * scale);
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

template <class T>
static auto BindRmsNormBackward(const op::RmsNormBackward& op, Binder& binder) -> Kernel {
  const Matrix size = AsMatrix(binder.plan(), op.x);
  const bool adds_dx = AddsOnto(binder, op.dx, op.dx_onto);
  const bool adds_dweight = AddsOnto(binder, op.dweight, op.dweight_onto);
  return [dy = Resolve<const T>(binder, op.dy), x = Resolve<const T>(binder, op.x),
          weight = Resolve<const T>(binder, op.weight), rstd = Resolve<const float>(binder, op.rstd),
          dx = Resolve<T>(binder, op.dx), dweight = Resolve<float>(binder, op.dweight), rows = size.rows,
          hidden = size.columns, adds_dx, adds_dweight](const Moment& moment) -> Status {
    const T* const dy_NH = dy.At(moment);
    const T* const x_NH = x.At(moment);
    const T* const weight_H = weight.At(moment);
    const float* const rstd_N = rstd.At(moment);
    T* const dx_NH = dx.At(moment);
    float* const dweight_H = dweight.At(moment);
    ParallelRanges(rows, RowsPerThread(hidden), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* const dy_H = dy_NH + row * hidden;
        const T* const x_H = x_NH + row * hidden;
        T* const dx_H = dx_NH + row * hidden;
        const float scale = rstd_N[row];
        const double dot = Sum(hidden, [=](int64_t h) {
          return static_cast<float>(dy_H[h]) * static_cast<float>(weight_H[h]) * static_cast<float>(x_H[h]);
        });
        const float mean = static_cast<float>(dot / static_cast<double>(hidden)) * scale * scale;
        if (adds_dx) {
#pragma omp simd
          for (int64_t h = 0; h < hidden; ++h) {
            const float g = static_cast<float>(dy_H[h]) * static_cast<float>(weight_H[h]);
            dx_H[h] = static_cast<T>(static_cast<float>(dx_H[h]) + scale * (g - static_cast<float>(x_H[h]) * mean));
          }
        } else {
#pragma omp simd
          for (int64_t h = 0; h < hidden; ++h) {
            const float g = static_cast<float>(dy_H[h]) * static_cast<float>(weight_H[h]);
            dx_H[h] = static_cast<T>(scale * (g - static_cast<float>(x_H[h]) * mean));
          }
        }
      }
    });
    ParallelRanges(hidden, std::max(ColumnBlock, RowsPerThread(rows)), [&](int64_t begin, int64_t end) {
      WeightGradient(dy_NH, x_NH, rstd_N, rows, hidden, {begin, end}, adds_dweight, dweight_H);
    });
    return Success{};
  };
}

auto Bind(const op::RmsNormBackward& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.x).dtype, [&]<class T>() { return BindRmsNormBackward<T>(op, binder); });
}

}  // namespace shardc
