// Checks of token ids before they become addresses. A kernel cannot return an error: it tells the device of a bad id,
// and skips it. runtime/kernels/vocab_shard.h has the CPU's checks.
#pragma once

#include "runtime/device/cuda/stream.h"
#include "runtime/kernels/cuda/device_code.h"
#include "runtime/kernels/vocab_shard.h"

namespace shardc::cuda {

/// The word in which kernels report ids outside the vocabulary: BadIdsOf.
using BadIds = unsigned long long*;

/// The first position counts.
__device__ __forceinline__ auto TellBadId(int32_t id, int64_t position, BadIds bad) -> void {
  atomicMin(bad, static_cast<unsigned long long>(position) << 32U | static_cast<uint32_t>(id));
}

__device__ __forceinline__ auto IsId(int32_t id, int64_t vocabulary) -> bool { return id >= 0 && id < vocabulary; }
/// -1 is a position without a target.
__device__ __forceinline__ auto IsTarget(int32_t id, int64_t vocabulary) -> bool {
  return id == -1 || IsId(id, vocabulary);
}
/// True if the id lies in this rank's range of the vocabulary.
__device__ __forceinline__ auto IsHere(int64_t id, const VocabShard& vocab) -> bool {
  return id >= vocab.first && id < vocab.first + vocab.size;
}

}  // namespace shardc::cuda
