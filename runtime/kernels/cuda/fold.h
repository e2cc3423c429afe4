// Sums of the terms that ranks give to a collective, on a GPU: the bits of shardc::Fold, but for those that tell
// one NaN from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/base/error_or.h"
#include "runtime/control/fold.h"

/// `cudaStream_t` is a pointer to it.
struct CUstream_st;

namespace shardc::cuda {

/// The most terms of a sum: they are told to the kernel by value.
constexpr size_t MostTerms = 256;

/// Computes on a stream what shardc::Fold computes, in memory that the GPU reaches. Errors: Environment if there are
/// more than MostTerms terms, or the device refuses the launch.
auto Fold(CUstream_st* stream, const std::vector<const std::byte*>& terms, size_t per_host, std::byte* out,
          int64_t num_elements, ReduceTypes types, bool accumulate) -> Status;

}  // namespace shardc::cuda
