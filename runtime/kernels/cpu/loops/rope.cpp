// y_SBA: S positions, B batch, A heads times D head_dim; table_S2D: cosines, then sines, D/2 each.
// Source: Su et al. 2021, "RoFormer"; halves as in Hugging Face's rotate_half.
#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc::SHARDC_LOOPS {

template <class T>
auto Rope(const float* table_S2D, int64_t positions, int64_t width, int64_t half, float sign, T* y_SBA) -> void {
  for (int64_t s = 0; s < positions; ++s) {
    const float* const cosine = table_S2D + s * 2 * half;
    const float* const sine = cosine + half;
    T* const last = y_SBA + (s + 1) * width;
    for (T* head = y_SBA + s * width; head != last; head += 2 * half) {
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
