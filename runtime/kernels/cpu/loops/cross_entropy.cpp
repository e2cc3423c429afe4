// logits_NV: N rows, `stride` apart, of which the first V are the vocabulary's, or a range of it; targets_N, lse_N.
#include "runtime/kernels/cpu/loops/exponential.h"
#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/loops/reductions.h"

namespace shardc::SHARDC_LOOPS {

/// The log of the sum of exponentials of each row.
template <class T>
auto LogSumExp(const T* logits_NV, int64_t rows, int64_t stride, int64_t vocabulary, float* lse_N) -> void {
  for (int64_t row = 0; row < rows; ++row) {
    const T* const logits_V = logits_NV + row * stride;
    if (vocabulary == 0) {
      lse_N[row] = -std::numeric_limits<float>::infinity();
      continue;
    }
    const float greatest = Max(logits_V, vocabulary);
    const double sum = Sum(vocabulary, [=](int64_t v) { return Exp(Load(logits_V[v]) - greatest); });
    lse_N[row] = static_cast<float>(static_cast<double>(greatest) + __builtin_log(sum));
  }
}
INSTANTIATE_ELEMENT_LOOP(LogSumExp)

/// (e^(logit - lse) - onehot) * scale over the logits, whose first column is id `first`; zero in a row without a
/// target, where scale is 0, and past the vocabulary.
template <class T>
auto CrossEntropyBackward(const int32_t* targets_N, const float* lse_N, int64_t rows, int64_t stride, int64_t first,
                          int64_t vocabulary, float scale, T* logits_NV) -> void {
  for (int64_t row = 0; row < rows; ++row) {
    T* const logits_V = logits_NV + row * stride;
    const bool counts = targets_N[row] >= 0 && scale != 0.0F;
#pragma omp simd
    for (int64_t v = counts ? vocabulary : 0; v < stride; ++v) {
      Store(logits_V[v], 0.0F);
    }
    if (!counts) {
      continue;
    }
    const int64_t target = targets_N[row] - first;
    const bool is_here = target >= 0 && target < vocabulary;
    const float shift = lse_N[row];
    const float at_target = is_here ? Exp(Load(logits_V[target]) - shift) - 1.0F : 0.0F;
#pragma omp simd
    for (int64_t v = 0; v < vocabulary; ++v) {
      Store(logits_V[v], Exp(Load(logits_V[v]) - shift) * scale);
    }
    if (is_here) {
      Store(logits_V[target], at_target * scale);
    }
  }
}
INSTANTIATE_ELEMENT_LOOP(CrossEntropyBackward)

}  // namespace shardc::SHARDC_LOOPS
