// Operands of block products, laid out as the products read them.
//
// The left operand is rows of k terms. The right operand is k rows of n, of f32; or of bf16 pairs: terms 2 i and 2 i +
// 1 of a column side by side, as dot product instructions take them. Where k is odd, bf16 rows and pairs end in a zero.
#include "runtime/kernels/cpu/loops/instantiate.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/loops/transpose16.h"

namespace shardc::SHARDC_LOOPS {

template <class R>
constexpr bool IsPaired = std::is_same_v<R, BFloat16>;

[[gnu::always_inline]] static inline auto Convert(float element, float& to) -> void { to = element; }
[[gnu::always_inline]] static inline auto Convert(BFloat16 element, float& to) -> void { to = Load(element); }
[[gnu::always_inline]] static inline auto Convert(BFloat16 element, BFloat16& to) -> void { to = element; }

/// Asks for the lines of a row that is needed soon: rows lie too far apart for the processor to guess.
template <class T>
[[gnu::always_inline]] static inline auto Prefetch(const T* row, int64_t elements) -> void {
  for (int64_t i = 0; i < elements; i += 64 / static_cast<int64_t>(sizeof(T))) {
    __builtin_prefetch(row + i);
  }
}
constexpr int64_t RowsAhead = 4;

template <class T, class R>
auto PackLeft(const T* a_MK, int64_t stride, int64_t m, int64_t k, R* packed, int64_t packed_stride) -> void {
  for (int64_t row = 0; row < m; ++row) {
    const T* const from = a_MK + row * stride;
    R* const to = packed + row * packed_stride;
    Prefetch(from + RowsAhead * stride, k);
#pragma omp simd
    for (int64_t i = 0; i < k; ++i) {
      Convert(from[i], to[i]);
    }
    if (IsPaired<R> && k % 2 != 0) {
      Store(to[k], 0.0F);
    }
  }
}
INSTANTIATE_RESIDUAL_LOOP(PackLeft)

#ifdef __AVX512F__

/// 16 columns, from `at` on, of a row or a pair of rows, as 16 words: f32, or bf16 pairs along the rows' index.
[[gnu::always_inline]] static inline auto LoadColumns(const float* at, int64_t, bool, __mmask16 mask, float*)
    -> __m512i {
  return _mm512_maskz_loadu_epi32(mask, at);
}
[[gnu::always_inline]] static inline auto LoadColumns(const BFloat16* at, int64_t, bool, __mmask16 mask, float*)
    -> __m512i {
  return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, at)), 16);
}
[[gnu::always_inline]] static inline auto LoadColumns(const BFloat16* at, int64_t stride, bool has_odd, __mmask16 mask,
                                                      BFloat16*) -> __m512i {
  const __m512i even = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, at));
  if (!has_odd) {
    return even;
  }
  const __m512i odd = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, at + stride));
  return _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
}

#endif

template <class T, class R>
auto PackRight(const T* b_KN, int64_t stride, int64_t k, int64_t n, R* packed, int64_t packed_stride) -> void {
  if constexpr (!IsPaired<R>) {
    PackLeft(b_KN, stride, k, n, packed, packed_stride);
  } else {
    for (int64_t row = 0; row < k; row += 2) {
      const T* const even = b_KN + row * stride;
      R* const to = packed + row * packed_stride;
      Prefetch(even + RowsAhead * stride, n);
      Prefetch(even + (RowsAhead + 1) * stride, n);
#ifdef __AVX512F__
      for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 mask = FirstWords(n - i);
        _mm512_mask_storeu_epi32(to + 2 * i, mask, LoadColumns(even + i, stride, row + 1 < k, mask, to));
      }
#else
      for (int64_t i = 0; i < n; ++i) {
        to[2 * i] = even[i];
        if (row + 1 < k) {
          to[2 * i + 1] = even[stride + i];
        } else {
          Store(to[2 * i + 1], 0.0F);
        }
      }
#endif
    }
  }
}
INSTANTIATE_RESIDUAL_LOOP(PackRight)

#ifdef __AVX512F__

/// a is k rows of m: packed gets m rows of k.
template <class T, class R>
auto PackLeftTransposed(const T* a_KM, int64_t stride, int64_t m, int64_t k, R* packed, int64_t packed_stride) -> void {
  constexpr int64_t TermsOfWord = IsPaired<R> ? 2 : 1;
  const int64_t words = (k + TermsOfWord - 1) / TermsOfWord;
  // Whole lines of a few rows of `a` at a time.
  for (int64_t word = 0; word < words; word += 16) {
    for (int64_t column = 0; column < m; column += 16) {
      const __mmask16 columns = FirstWords(m - column);
      const int64_t num_columns = m - column < 16 ? m - column : 16;
      __m512i block[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16 * TermsOfWord; ++i) {
        __builtin_prefetch(a_KM + ((word + 16) * TermsOfWord + i) * stride + column);
      }
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        const int64_t term = (word + i) * TermsOfWord;
        block[i] = term < k ? LoadColumns(a_KM + term * stride + column, stride, term + 1 < k, columns, packed)
                            : _mm512_setzero_si512();
      }
      Transpose16(block);
      const __mmask16 kept = FirstWords(words - word);
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        if (i < num_columns) {
          _mm512_mask_storeu_epi32(packed + (column + i) * packed_stride + word * TermsOfWord, kept, block[i]);
        }
      }
    }
  }
}

/// 16 words from term `at` on, of `left` terms.
[[gnu::always_inline]] static inline auto LoadTerms(const float* at, int64_t left, float*) -> __m512i {
  return _mm512_maskz_loadu_epi32(FirstWords(left), at);
}
[[gnu::always_inline]] static inline auto LoadTerms(const BFloat16* at, int64_t left, float*) -> __m512i {
  return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(FirstWords(left), at)), 16);
}
[[gnu::always_inline]] static inline auto LoadTerms(const BFloat16* at, int64_t left, BFloat16*) -> __m512i {
  return _mm512_maskz_loadu_epi16(FirstHalves(left), at);
}

/// b is n rows of k: packed gets k rows (or pairs of rows) of n.
template <class T, class R>
auto PackRightTransposed(const T* b_NK, int64_t stride, int64_t k, int64_t n, R* packed, int64_t packed_stride)
    -> void {
  constexpr int64_t TermsOfWord = IsPaired<R> ? 2 : 1;
  const int64_t words = (k + TermsOfWord - 1) / TermsOfWord;
  for (int64_t word = 0; word < words; word += 16) {
    const int64_t term = word * TermsOfWord;
    const int64_t num_words = words - word < 16 ? words - word : 16;
    for (int64_t column = 0; column < n; column += 16) {
      __m512i block[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        __builtin_prefetch(b_NK + (column + 16 + i) * stride + term);
      }
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        block[i] =
            column + i < n ? LoadTerms(b_NK + (column + i) * stride + term, k - term, packed) : _mm512_setzero_si512();
      }
      Transpose16(block);
      const __mmask16 kept = FirstWords(n - column);
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        if (i < num_words) {
          _mm512_mask_storeu_epi32(packed + (term + i * TermsOfWord) * packed_stride + column * TermsOfWord, kept,
                                   block[i]);
        }
      }
    }
  }
}

#else

template <class T, class R>
auto PackLeftTransposed(const T* a_KM, int64_t stride, int64_t m, int64_t k, R* packed, int64_t packed_stride) -> void {
  // Eight rows at a time: their lines stay in cache while the columns go by.
  for (int64_t first = 0; first < m; first += 8) {
    const int64_t end = first + 8 < m ? first + 8 : m;
    for (int64_t term = 0; term < k; ++term) {
      for (int64_t row = first; row < end; ++row) {
        Convert(a_KM[term * stride + row], packed[row * packed_stride + term]);
      }
    }
    if (IsPaired<R> && k % 2 != 0) {
      for (int64_t row = first; row < end; ++row) {
        Store(packed[row * packed_stride + k], 0.0F);
      }
    }
  }
}

template <class T, class R>
auto PackRightTransposed(const T* b_NK, int64_t stride, int64_t k, int64_t n, R* packed, int64_t packed_stride)
    -> void {
  if constexpr (!IsPaired<R>) {
    PackLeftTransposed(b_NK, stride, k, n, packed, packed_stride);
  } else {
    for (int64_t term = 0; term < k; term += 2) {
      R* const to = packed + term * packed_stride;
      for (int64_t column = 0; column < n; ++column) {
        const T* const from = b_NK + column * stride + term;
        to[2 * column] = from[0];
        if (term + 1 < k) {
          to[2 * column + 1] = from[1];
        } else {
          Store(to[2 * column + 1], 0.0F);
        }
      }
    }
  }
}

#endif

INSTANTIATE_RESIDUAL_LOOP(PackLeftTransposed)
INSTANTIATE_RESIDUAL_LOOP(PackRightTransposed)

template <class T>
[[gnu::always_inline]] static inline auto StoreRow(const float* x_N, int64_t n, bool adds, T* y_N) -> void {
  if (adds) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      Store(y_N[i], Load(y_N[i]) + x_N[i]);
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      Store(y_N[i], x_N[i]);
    }
  }
}

/// y, or its sum with what y held: rows of a block of sums.
template <class T>
auto StoreBlock(const float* x, int64_t stride, int64_t rows, int64_t columns, bool adds, T* y, int64_t y_stride)
    -> void {
  for (int64_t row = 0; row < rows; ++row) {
    StoreRow(x + row * stride, columns, adds, y + row * y_stride);
  }
}
INSTANTIATE_ELEMENT_LOOP(StoreBlock)

/// The same of x transposed: y has `columns` rows.
template <class T>
auto StoreBlockTransposed(const float* x, int64_t stride, int64_t rows, int64_t columns, bool adds, T* y,
                          int64_t y_stride) -> void {
  for (int64_t row = 0; row < rows; row += 16) {
    const int64_t num_rows = rows - row < 16 ? rows - row : 16;
    for (int64_t column = 0; column < columns; column += 16) {
      const int64_t num_columns = columns - column < 16 ? columns - column : 16;
      float block[16 * 16];
#ifdef __AVX512F__
      __m512i words[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        words[i] = i < num_rows ? _mm512_maskz_loadu_epi32(FirstWords(num_columns), x + (row + i) * stride + column)
                                : _mm512_setzero_si512();
      }
      Transpose16(words);
      for (int64_t i = 0; i < 16; ++i) {
        _mm512_storeu_si512(block + i * 16, words[i]);
      }
#else
      for (int64_t i = 0; i < num_rows; ++i) {
        for (int64_t j = 0; j < num_columns; ++j) {
          block[j * 16 + i] = x[(row + i) * stride + column + j];
        }
      }
#endif
      StoreBlock(block, 16, num_columns, num_rows, adds, y + column * y_stride + row, y_stride);
    }
  }
}
INSTANTIATE_ELEMENT_LOOP(StoreBlockTransposed)

}  // namespace shardc::SHARDC_LOOPS
