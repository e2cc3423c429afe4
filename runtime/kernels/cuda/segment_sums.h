// Sums of squares over the owned segments of a slice, and the first segment with an element that is not finite: what
// sum_squares and check_finite have in common.
//
// The slice is cut into up to RangesOfElements ranges, a block each, by its length alone. A block finds the sum of
// squares of its elements in f64, segment by segment: a segment's sum is finite if and only if its elements are, since
// the squares of f32, and their sums, are finite in f64. The sums of ranges go to scratch, and one block sums them in a
// fixed order.
#pragma once

#include <vector>

#include "compiler/plan/local_parameter.h"
#include "runtime/kernels/cuda/operand.h"

namespace shardc::cuda {

/// An owned segment as a launch sees it.
struct CheckedSegment {
  /// In elements of the slice.
  int64_t begin = 0;
  int64_t end = 0;
  /// The number that is reported if the segment has an element that is not finite; the least of these numbers counts.
  int64_t number = 0;
  bool counts_in_sum = true;
};

/// So many of them as the parameters of a launch, which takes 4 KiB, have beside the others.
struct CheckedSegments {
  static constexpr int Most = 96;
  int count;
  CheckedSegment segments[Most];
};

/// The sum of a range of elements, or of all.
struct RangeSum {
  double squares;
  int64_t bad;
};

struct AddRangeSums {
  __device__ __forceinline__ auto operator()(const RangeSum& a, const RangeSum& b) const -> RangeSum {
    return {a.squares + b.squares, a.bad < b.bad ? a.bad : b.bad};
  }
};

constexpr int SegmentThreads = 256;

/// The sum of squares of elements [begin, end), of which this thread takes its share.
template <int N, class T>
__device__ __forceinline__ auto SquaresOfShare(const T* x_N, int64_t begin, int64_t end) -> double {
  double squares = 0;
  for (int64_t i = begin / N * N + Thread() * N; i < end; i += SegmentThreads * N) {
    Floats<N> x{};
    if (i >= begin && i + N <= end) {
      x = LoadFloats<N>(x_N + i);
    } else {
      UNROLL
      for (int k = 0; k < N; ++k) {
        x.at[k] = i + k >= begin && i + k < end ? Load(x_N + i + k) : 0.0F;
      }
    }
    UNROLL
    for (int k = 0; k < N; ++k) {
      const auto value = static_cast<double>(x.at[k]);
      squares += value * value;
    }
  }
  return squares;
}

/// sums[block] (+)= the sum of the block's range. `none`: what says that all is finite.
template <class T, int N>
__global__ void __launch_bounds__(SegmentThreads)
    SumRangesOfSegments(const T* x_N, int64_t range, CheckedSegments all, bool adds, int64_t none, RangeSum* sums) {
  const int64_t first = BlockX() * range;
  RangeSum own{0, none};
  for (int i = 0; i < all.count; ++i) {
    const CheckedSegment& segment = all.segments[i];
    const int64_t begin = first > segment.begin ? first : segment.begin;
    const int64_t end = first + range < segment.end ? first + range : segment.end;
    if (begin >= end) {
      continue;
    }
    const double squares = SquaresOfShare<N>(x_N, begin, end);
    own.squares += segment.counts_in_sum ? squares : 0;
    own.bad = isfinite(squares) || own.bad < segment.number ? own.bad : segment.number;
  }
  own = BlockReduce(own, RangeSum{0, none}, AddRangeSums{});
  if (Thread() == 0) {
    sums[BlockX()] = adds ? AddRangeSums{}(sums[BlockX()], own) : own;
  }
}

constexpr int RangeThreads = 256;

/// The sum of all ranges, to each thread of the one block.
__device__ __forceinline__ auto SumOfRanges(const RangeSum* sums, int64_t ranges) -> RangeSum {
  constexpr RangeSum None{0, INT64_MAX};
  RangeSum own = None;
  for (int64_t i = Thread(); i < ranges; i += RangeThreads) {
    own = AddRangeSums{}(own, sums[i]);
  }
  return BlockReduce(own, None, AddRangeSums{});
}

/// Returns the elements of a range: a multiple of those that the threads of a block take at once.
constexpr auto SizeOfRange(int64_t length) -> int64_t {
  constexpr int64_t AtOnce = SegmentThreads * PackSize<BFloat16>;
  return BlocksFor(BlocksFor(length, RangesOfElements), AtOnce) * AtOnce;
}
constexpr auto NumRanges(int64_t length) -> int64_t { return BlocksFor(length, SizeOfRange(length)); }

/// Returns the owned segments of a slice, as many launches take them: at least one, which may have none.
template <class NumberOf>
auto CheckedSegmentsOf(const Plan& plan, SubVectorId id, int64_t rank, const NumberOf& number_of)
    -> std::vector<CheckedSegments> {
  std::vector<CheckedSegments> launches(1);
  for (const OwnedSegment& segment : OwnedSegments(plan, id, rank)) {
    if (launches.back().count == CheckedSegments::Most) {
      launches.emplace_back();
    }
    CheckedSegments& last = launches.back();
    last.segments[last.count++] = {.begin = segment.in_slice.begin,
                                   .end = segment.in_slice.end,
                                   .number = number_of(segment.parameter),
                                   .counts_in_sum = segment.counted_in_norm};
  }
  return launches;
}

/// Launches SumRangesOfSegments for all segments of a slice of `length` elements.
template <class T>
auto SumSegments(DeviceStream stream, const T* x_N, int64_t length, const std::vector<CheckedSegments>& launches,
                 int64_t none, RangeSum* sums) -> Status {
  constexpr int N = PackSize<T>;
  for (const CheckedSegments& segments : launches) {
    RETURN_IF_ERROR(Launch(stream, {.grid = {NumRanges(length)}, .threads = SegmentThreads},
                           IsAligned<N>(x_N) ? SumRangesOfSegments<T, N> : SumRangesOfSegments<T, 1>, x_N,
                           SizeOfRange(length), segments, &segments != launches.data(), none, sums));
  }
  return Success{};
}

}  // namespace shardc::cuda
