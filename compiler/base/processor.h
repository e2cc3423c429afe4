// What this machine's processor can run.
#pragma once

namespace shardc {

/// AVX-512 as far as loops and initial values use it: F, BW, CD, DQ and VL.
inline auto HasAvx512() -> bool {
  static const bool has = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512cd") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0;
  return has;
}

}  // namespace shardc
