// y_NW: a row of the table, table_N2D, for each of N rows of whole heads: cosines, then sines, D/2 each.
// Source: Su et al. 2021, "RoFormer"; halves as in Hugging Face's rotate_half.
#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc::SHARDC_LOOPS {

template <class T>
auto Rope(const float* table_N2D, int64_t rows, int64_t width, int64_t half, float sign, T* y_NW) -> void {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const cosine = table_N2D + row * 2 * half;
    const float* const sine = cosine + half;
    T* const last = y_NW + (row + 1) * width;
    for (T* head = y_NW + row * width; head != last; head += 2 * half) {
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float a = Load(head[i]);
        const float b = Load(head[half + i]);
        const float turn = sign * sine[i];
        Store(head[i], a * cosine[i] - b * turn);
        Store(head[half + i], b * cosine[i] + a * turn);
      }
    }
  }
}
INSTANTIATE_ELEMENT_LOOP(Rope)

}  // namespace shardc::SHARDC_LOOPS
