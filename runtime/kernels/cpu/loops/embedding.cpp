// y_NH, dy_NH: N tokens, H hidden; weight_VH, dweight_VH: V vocabulary.
#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc::SHARDC_LOOPS {

template <class T, class R>
auto Embedding(const int32_t* tokens_N, const T* weight_VH, int64_t num_tokens, int64_t hidden, R* y_NH) -> void {
  for (int64_t i = 0; i < num_tokens; ++i) {
    const T* const weight_H = weight_VH + tokens_N[i] * hidden;
    R* const y_H = y_NH + i * hidden;
#pragma omp simd
    for (int64_t h = 0; h < hidden; ++h) {
      Store(y_H[h], Load(weight_H[h]));
    }
  }
}
INSTANTIATE_RESIDUAL_LOOP(Embedding)

/// Adds the columns [begin, end) of the rows of dy to the rows of dweight that the tokens name, in token order.
template <class T>
auto EmbeddingBackward(const int32_t* tokens_N, const T* dy_NH, int64_t num_tokens, int64_t hidden, int64_t begin,
                       int64_t end, float* dweight_VH) -> void {
  for (int64_t i = 0; i < num_tokens; ++i) {
    float* const row_H = dweight_VH + tokens_N[i] * hidden;
    const T* const dy_H = dy_NH + i * hidden;
#pragma omp simd
    for (int64_t h = begin; h < end; ++h) {
      row_H[h] += Load(dy_H[h]);
    }
  }
}
INSTANTIATE_ELEMENT_LOOP(EmbeddingBackward)

}  // namespace shardc::SHARDC_LOOPS
