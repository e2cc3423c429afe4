#include "runtime/init/blocks.h"

#include <cmath>

#include "runtime/init/fill.h"
#include "runtime/init/normal_quantile.h"

namespace shardc {

#define AVX512 [[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]]

static auto HasAvx512() -> bool {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl");
  return has;
}

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

AVX512 static auto UniformsAvx512(PhiloxKey key, int64_t first, BlockOfDoubles& u) -> void { Uniforms(key, first, u); }

auto UniformBlock(PhiloxKey key, int64_t first, BlockOfDoubles& u) -> void {
  HasAvx512() ? UniformsAvx512(key, first, u) : Uniforms(key, first, u);
}

/// Of all elements as if they were central; those that are not are done again.
[[gnu::always_inline]] static inline auto CentralQuantiles(const BlockOfDoubles& p, BlockOfDoubles& z) -> void {
  for (size_t i = 0; i < p.size(); ++i) {
    z[i] = CentralQuantile(p[i] - 0.5);
  }
}

AVX512 static auto CentralQuantilesAvx512(const BlockOfDoubles& p, BlockOfDoubles& z) -> void {
  CentralQuantiles(p, z);
}

auto NormalQuantileBlock(const BlockOfDoubles& p, BlockOfDoubles& z) -> void {
  HasAvx512() ? CentralQuantilesAvx512(p, z) : CentralQuantiles(p, z);
  for (size_t i = 0; i < p.size(); ++i) {
    if (!IsCentral(p[i] - 0.5)) {
      z[i] = NormalQuantile(p[i]);
    }
  }
}

}  // namespace shardc
