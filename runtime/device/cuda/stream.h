// The part of a CUDA device that kernels see: the stream that they launch on, and where they say what ids they could
// not take. Without headers of CUDA, so that kernels are compiled for tests too, which have streams and words of their
// own.
#pragma once

#include <array>
#include <cstdint>

#include "compiler/base/error_or.h"

/// `cudaStream_t` is a pointer to it.
struct CUstream_st;

namespace shardc {

class Queue;

/// Returns the stream of a queue of a CUDA device.
auto StreamOf(Queue& queue) -> CUstream_st*;

/// Returns a word of the device for ids outside a vocabulary of this size, all ones until a kernel finds one. A kernel
/// that does takes the least of the word and `position << 32 | id`, the id as 32 bits, and skips the id;
/// RankDevice::Finish reports it. Requires: called while an op is bound.
auto BadIdsOf(Queue& queue, int64_t vocabulary) -> unsigned long long*;

/// Words that kernels leave for the host, in memory of the device.
constexpr int64_t NumLeftWords = 64;

/// Returns the words for kernels that are enqueued now, which find them all 0. Each use begins so.
auto ClearedWords(Queue& queue) -> ErrorOr<uint64_t*>;
/// Returns what was left in the words. Waits until all that was enqueued on the queue is over.
auto ReadWords(Queue& queue) -> ErrorOr<std::array<uint64_t, NumLeftWords>>;

}  // namespace shardc
