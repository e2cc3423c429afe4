#include "runtime/init/blocks.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "compiler/base/processor.h"
#include "runtime/init/fill.h"
#include "runtime/init/normal_quantile.h"

namespace shardc {

#define AVX512 [[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]]

[[gnu::always_inline]] static inline auto Uniforms(PhiloxKey key, int64_t first, BlockOfDoubles& u) -> void {
  for (int64_t i = 0; i < InitBlock; ++i) {
    // Words in 64 bits each: a product of two halves is one instruction of the vector unit.
    const auto index = static_cast<uint64_t>(first + i);
    uint64_t c0 = index & 0xFFFFFFFF;
    uint64_t c1 = index >> 32;
    uint64_t c2 = 0;
    uint64_t c3 = 0;
    uint64_t k0 = key[0];
    uint64_t k1 = key[1];
    for (int round = 0; round < 10; ++round) {
      const uint64_t product0 = uint64_t{0xD2511F53} * c0;
      const uint64_t product1 = uint64_t{0xCD9E8D57} * c2;
      c0 = (product1 >> 32) ^ c1 ^ k0;
      c1 = product1 & 0xFFFFFFFF;
      c2 = (product0 >> 32) ^ c3 ^ k1;
      c3 = product0 & 0xFFFFFFFF;
      k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF;
      k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF;
    }
    const auto bits = static_cast<int64_t>((c1 << 32 | c0) >> 11);
    u[static_cast<size_t>(i)] = (static_cast<double>(bits) + 0.5) * 0x1p-53;
  }
}

/// Halves of 64 bits that a product does not read may hold anything: what is above the lowest 32 of a word is never
/// used.
AVX512 static auto UniformsAvx512(PhiloxKey key, int64_t first, BlockOfDoubles& u) -> void {
  const __m512i multiplier0 = _mm512_set1_epi64(0xD2511F53);
  const __m512i multiplier1 = _mm512_set1_epi64(0xCD9E8D57);
  const __m512i lowest = _mm512_set1_epi64(0xFFFFFFFF);
  for (int64_t i = 0; i < InitBlock; i += 8) {
    const __m512i index = _mm512_add_epi64(_mm512_set1_epi64(first + i), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    __m512i c0 = index;
    __m512i c1 = _mm512_srli_epi64(index, 32);
    __m512i c2 = _mm512_setzero_si512();
    __m512i c3 = _mm512_setzero_si512();
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];
    for (int round = 0; round < 10; ++round) {
      const __m512i product0 = _mm512_mul_epu32(multiplier0, c0);
      const __m512i product1 = _mm512_mul_epu32(multiplier1, c2);
      c0 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(product1, 32), c1), _mm512_set1_epi64(k0));
      c1 = product1;
      c2 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(product0, 32), c3), _mm512_set1_epi64(k1));
      c3 = product0;
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    const __m512i word = _mm512_or_si512(_mm512_slli_epi64(c1, 32), _mm512_and_si512(c0, lowest));
    const __m512d bits = _mm512_cvtepi64_pd(_mm512_srli_epi64(word, 11));
    _mm512_storeu_pd(u.data() + i, _mm512_mul_pd(_mm512_add_pd(bits, _mm512_set1_pd(0.5)), _mm512_set1_pd(0x1p-53)));
  }
}

auto UniformBlock(PhiloxKey key, int64_t first, BlockOfDoubles& u) -> void {
  HasAvx512() ? UniformsAvx512(key, first, u) : Uniforms(key, first, u);
}

/// Of all elements as if they were central.
[[gnu::always_inline]] static inline auto CentralQuantiles(const BlockOfDoubles& p, BlockOfDoubles& z) -> void {
  for (size_t i = 0; i < p.size(); ++i) {
    z[i] = CentralQuantile(p[i] - 0.5);
  }
}

[[gnu::always_inline]] static inline auto NearTailQuantiles(size_t n, const BlockOfDoubles& p, BlockOfDoubles& z)
    -> void {
  for (size_t i = 0; i < n; ++i) {
    z[i] = NearTailQuantile(p[i]);
  }
}

/// Those for which the first formula of a tail does not hold: hardly ever one.
[[gnu::always_inline]] static inline auto PutFarTails(size_t n, const BlockOfDoubles& tails, BlockOfDoubles& quantiles)
    -> void {
  for (size_t j = 0; j < n; ++j) {
    if (tails[j] < FarTail) [[unlikely]] {
      quantiles[j] = TailQuantile(tails[j]);
    }
  }
}

// Three elements in twenty lie in a tail: these are put next to each other, computed, and put back.

static auto QuantilesPortable(const BlockOfDoubles& p, BlockOfDoubles& z) -> void {
  CentralQuantiles(p, z);
  std::array<uint16_t, InitBlock> places;
  size_t n = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    places[n] = static_cast<uint16_t>(i);
    n += IsCentral(p[i] - 0.5) ? 0 : 1;
  }
  BlockOfDoubles tails;
  BlockOfDoubles quantiles;
  for (size_t j = 0; j < n; ++j) {
    tails[j] = p[places[j]] < 0.5 ? p[places[j]] : 1 - p[places[j]];
  }
  NearTailQuantiles(n, tails, quantiles);
  PutFarTails(n, tails, quantiles);
  for (size_t j = 0; j < n; ++j) {
    z[places[j]] = p[places[j]] < 0.5 ? -quantiles[j] : quantiles[j];
  }
}

AVX512 static auto QuantilesAvx512(const BlockOfDoubles& p, BlockOfDoubles& z) -> void {
  CentralQuantiles(p, z);
  constexpr size_t Lanes = 8;
  std::array<__mmask8, InitBlock / Lanes> in_tail;
  // Whole vectors are stored behind what counts.
  std::array<double, InitBlock + Lanes> gathered;
  size_t n = 0;
  for (size_t i = 0; i < p.size(); i += Lanes) {
    const __m512d probability = _mm512_loadu_pd(p.data() + i);
    const __m512d q = _mm512_sub_pd(probability, _mm512_set1_pd(0.5));
    const __mmask8 mask = _mm512_cmp_pd_mask(_mm512_abs_pd(q), _mm512_set1_pd(CentralWidth), _CMP_GT_OQ);
    const __m512d tail = _mm512_min_pd(probability, _mm512_sub_pd(_mm512_set1_pd(1), probability));
    _mm512_storeu_pd(gathered.data() + n, _mm512_maskz_compress_pd(mask, tail));
    in_tail[i / Lanes] = mask;
    n += static_cast<size_t>(__builtin_popcount(mask));
  }
  BlockOfDoubles tails;
  BlockOfDoubles quantiles;
  std::copy_n(gathered.data(), n, tails.data());
  NearTailQuantiles(n, tails, quantiles);
  PutFarTails(n, tails, quantiles);
  std::copy_n(quantiles.data(), n, gathered.data());
  size_t at = 0;
  for (size_t i = 0; i < p.size(); i += Lanes) {
    const __mmask8 mask = in_tail[i / Lanes];
    const __m512d probability = _mm512_loadu_pd(p.data() + i);
    const __m512d quantile = _mm512_maskz_expand_pd(mask, _mm512_loadu_pd(gathered.data() + at));
    const __mmask8 below = _mm512_cmp_pd_mask(probability, _mm512_set1_pd(0.5), _CMP_LT_OQ);
    const __m512d turned = _mm512_mask_xor_pd(quantile, below, quantile, _mm512_set1_pd(-0.0));
    _mm512_storeu_pd(z.data() + i, _mm512_mask_mov_pd(_mm512_loadu_pd(z.data() + i), mask, turned));
    at += static_cast<size_t>(__builtin_popcount(mask));
  }
}

auto NormalQuantileBlock(const BlockOfDoubles& p, BlockOfDoubles& z) -> void {
  HasAvx512() ? QuantilesAvx512(p, z) : QuantilesPortable(p, z);
}

}  // namespace shardc
