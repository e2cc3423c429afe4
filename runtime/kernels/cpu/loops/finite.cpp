#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc::SHARDC_LOOPS {

/// An element is not finite where all bits of its exponent are set: then, without its sign, it is infinity or more.
template <class T>
auto AllFinite(const T* x_N, int64_t n) -> bool {
  using Word = std::conditional_t<std::is_same_v<T, float>, uint32_t, uint16_t>;
  constexpr Word WithoutSign = std::is_same_v<T, float> ? 0x7FFFFFFFU : 0x7FFFU;
  constexpr Word Infinity = std::is_same_v<T, float> ? 0x7F800000U : 0x7F80U;
  Word largest = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) {
    Word word = 0;
    __builtin_memcpy(&word, x_N + i, sizeof(word));
    word &= WithoutSign;
    largest = word > largest ? word : largest;
  }
  return largest < Infinity;
}

INSTANTIATE_ELEMENT_LOOP(AllFinite)

}  // namespace shardc::SHARDC_LOOPS
