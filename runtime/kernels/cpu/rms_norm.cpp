// rms_norm: y = x * rstd * weight, a row at a time.
// x_NH, y_NH: N rows, H hidden; weight_H; rstd_N.
// Source: Zhang, Sennrich 2019, "Root Mean Square Layer Normalization", eq. 4.
#include <cmath>

#include "runtime/kernels/cpu/operand.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/reductions.h"

namespace shardc {

template <class T>
static auto BindRmsNorm(const op::RmsNorm& op, Binder& binder) -> Kernel {
  const Matrix size = AsMatrix(binder.plan(), op.x);
  return [x = Resolve<const T>(binder, op.x), weight = Resolve<const T>(binder, op.weight),
          y = Resolve<T>(binder, op.y), rstd = Resolve<float>(binder, op.rstd), rows = size.rows, hidden = size.columns,
          eps = op.eps](const Moment& moment) -> Status {
    const T* const x_NH = x.At(moment);
    const T* const weight_H = weight.At(moment);
    T* const y_NH = y.At(moment);
    float* const rstd_N = rstd.At(moment);
    ParallelRanges(rows, RowsPerThread(hidden), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* const x_H = x_NH + row * hidden;
        T* const y_H = y_NH + row * hidden;
        const double squares = Sum(hidden, [=](int64_t h) {
          const float value = static_cast<float>(x_H[h]);
          return value * value;
        });
        const float scale = static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(hidden) + eps));
        rstd_N[row] = scale;
#pragma omp simd
        for (int64_t h = 0; h < hidden; ++h) {
          y_H[h] = static_cast<T>(static_cast<float>(x_H[h]) * scale * static_cast<float>(weight_H[h]));
        }
      }
    });
    return Success{};
  };
}

auto Bind(const op::RmsNorm& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.x).dtype, [&]<class T>() { return BindRmsNorm<T>(op, binder); });
}

}  // namespace shardc
