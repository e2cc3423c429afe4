// A 16 x 16 block of words, transposed in registers.
#pragma once

#ifdef __AVX512F__

#include <cstdint>

// g++ 12 takes the intrinsics' undefined operands for our mistakes (GCC PR 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

namespace shardc::SHARDC_LOOPS {

/// rows[i] gets word i of each of the rows. Two rounds of unpacking transpose the 4 x 4 blocks of each 128-bit lane
/// group, two of shuffling the lanes.
[[gnu::always_inline]] inline auto Transpose16(__m512i* rows) -> void {
  __m512i t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
  }
  // u[4 g + c] holds, in lane l, column 4 l + c of rows 4 g to 4 g + 3.
  __m512i u[16];
  for (int g = 0; g < 4; ++g) {
    u[4 * g] = _mm512_unpacklo_epi64(t[4 * g], t[4 * g + 2]);
    u[4 * g + 1] = _mm512_unpackhi_epi64(t[4 * g], t[4 * g + 2]);
    u[4 * g + 2] = _mm512_unpacklo_epi64(t[4 * g + 1], t[4 * g + 3]);
    u[4 * g + 3] = _mm512_unpackhi_epi64(t[4 * g + 1], t[4 * g + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    const __m512i low_01 = _mm512_shuffle_i32x4(u[c], u[4 + c], 0x44);
    const __m512i high_01 = _mm512_shuffle_i32x4(u[c], u[4 + c], 0xEE);
    const __m512i low_23 = _mm512_shuffle_i32x4(u[8 + c], u[12 + c], 0x44);
    const __m512i high_23 = _mm512_shuffle_i32x4(u[8 + c], u[12 + c], 0xEE);
    rows[c] = _mm512_shuffle_i32x4(low_01, low_23, 0x88);
    rows[4 + c] = _mm512_shuffle_i32x4(low_01, low_23, 0xDD);
    rows[8 + c] = _mm512_shuffle_i32x4(high_01, high_23, 0x88);
    rows[12 + c] = _mm512_shuffle_i32x4(high_01, high_23, 0xDD);
  }
}

/// The first `count` of 16 words, or of 32 halves.
[[gnu::always_inline]] inline auto FirstWords(int64_t count) -> __mmask16 {
  return count >= 16 ? 0xFFFFU : static_cast<__mmask16>((1U << count) - 1U);
}
[[gnu::always_inline]] inline auto FirstHalves(int64_t count) -> __mmask32 {
  return count >= 32 ? 0xFFFFFFFFU : (1U << count) - 1U;
}

}  // namespace shardc::SHARDC_LOOPS

#endif
