// Sums that mean and standard deviation come from.
#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc::SHARDC_LOOPS {

/// Adds the sum of x - center to `sum`, and that of its square to `squares`.
template <class T>
auto AddMoments(const T* x_N, int64_t n, double center, double* sum, double* squares) -> void {
  double first = 0;
  double second = 0;
#pragma omp simd reduction(+ : first, second)
  for (int64_t i = 0; i < n; ++i) {
    const double off = static_cast<double>(Load(x_N[i])) - center;
    first += off;
    second += off * off;
  }
  *sum += first;
  *squares += second;
}

INSTANTIATE_ELEMENT_LOOP(AddMoments)

}  // namespace shardc::SHARDC_LOOPS
