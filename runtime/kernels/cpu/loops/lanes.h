// Sixteen elements in a register, the first `mask` of them taking part: rows that are no multiple of sixteen long need
// no second loop for their ends, which at the lengths of attention's rows costs more than the first.
#pragma once

#ifdef __AVX512F__

#include "compiler/base/bfloat16.h"
#include "runtime/kernels/cpu/loops/transpose16.h"

namespace shardc::SHARDC_LOOPS {

[[gnu::always_inline]] inline auto StoreLanes(float* at, __mmask16 mask, __m512 lanes) -> void {
  _mm512_mask_storeu_ps(at, mask, lanes);
}
/// Rounds as Store does.
[[gnu::always_inline]] inline auto StoreLanes(BFloat16* at, __mmask16 mask, __m512 lanes) -> void {
  const __m512i words = _mm512_castps_si512(lanes);
  const __m512i last = _mm512_and_si512(_mm512_srli_epi32(words, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(words, _mm512_set1_epi32(0x7FFF)), last);
  const __m512i quiet =
      _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(lanes, lanes, _CMP_UNORD_Q), words, _mm512_set1_epi32(0x400000));
  _mm256_mask_storeu_epi16(at, mask, _mm512_cvtepi32_epi16(_mm512_srli_epi32(quiet, 16)));
}

/// e^x within 2 units in the last place, of lanes up to 88; 0 below -87, NaN for NaN. The polynomial is Exp's.
[[gnu::always_inline]] inline auto ExpLanes(__m512 x) -> __m512 {
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341F)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 r =
      _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4F), _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375F), x));
  __m512 p = _mm512_set1_ps(1.9875691500e-4F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3981999507e-3F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1F));
  const __m512 e_r = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), _mm512_add_ps(r, _mm512_set1_ps(1.0F)));
  // Not the denormal numbers that follow below: products with these are many times slower.
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.0F), _CMP_NLT_UQ), e_r, n);
}

}  // namespace shardc::SHARDC_LOOPS

#endif
