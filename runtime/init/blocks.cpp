#include "runtime/init/blocks.h"

#include <immintrin.h>

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

AVX512 static auto CentralQuantilesAvx512(const BlockOfDoubles& p, BlockOfDoubles& z) -> void {
  CentralQuantiles(p, z);
}

AVX512 static auto NearTailQuantilesAvx512(size_t n, const BlockOfDoubles& p, BlockOfDoubles& z) -> void {
  NearTailQuantiles(n, p, z);
}

auto NormalQuantileBlock(const BlockOfDoubles& p, BlockOfDoubles& z) -> void {
  HasAvx512() ? CentralQuantilesAvx512(p, z) : CentralQuantiles(p, z);
  // Three in twenty lie in a tail: these next to each other, and once more.
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
  HasAvx512() ? NearTailQuantilesAvx512(n, tails, quantiles) : NearTailQuantiles(n, tails, quantiles);
  for (size_t j = 0; j < n; ++j) {
    const double tail = tails[j] >= FarTail ? quantiles[j] : TailQuantile(tails[j]);
    z[places[j]] = p[places[j]] < 0.5 ? -tail : tail;
  }
}

}  // namespace shardc
