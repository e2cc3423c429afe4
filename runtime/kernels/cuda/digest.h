// Digests of what lies in memory of a GPU, taken there: what all ranks that hold the same compare every so many steps
// would take seconds to read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/device/family.h"
#include "runtime/kernels/kernel.h"

/// `cudaStream_t` is a pointer to it.
struct CUstream_st;

namespace shardc::cuda {

/// Returns a digest of each part. Any two that differ in one element differ; what differs in more does so but for a
/// chance of 2^-64. Not to be compared with digests of other programs. Between sections, when all queues are empty.
/// `of_kernels` and `of_host`: those of AreFinite.
auto DigestsOf(std::span<const ValuePart> parts, Binder& of_kernels, Binder& of_host)
    -> ErrorOr<std::vector<PartDigest>>;

/// Adds the digest of `count` elements of 2 or 4 bytes to two words.
auto AddDigest(CUstream_st* stream, const std::byte* first, int64_t count, int64_t element_bytes, uint64_t* words)
    -> Status;

}  // namespace shardc::cuda
