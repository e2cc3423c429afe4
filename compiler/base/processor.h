// What this machine's processor can run, and how much of it this process may use.
#pragma once

#include <atomic>
#include <cstdint>

namespace shardc {

/// AVX-512 as far as loops and initial values use it: F, BW, CD, DQ and VL.
inline auto HasAvx512() -> bool {
  static const bool has = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512cd") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0;
  return has;
}

inline auto HasAvx2() -> bool {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

/// To be called between two looks at what another thread writes.
inline auto Pause() -> void {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

/// Cores that the calling thread may run on: those of the machine, or as `taskset` and control groups cut them.
auto NumCores() -> int64_t;

}  // namespace shardc
