// Which elements an update of the CUDA family touches: owned segments, cut into blocks of elements. One launch updates
// all segments of a slice that its parameters hold.
#pragma once

#include "runtime/kernels/cuda/operand.h"
#include "runtime/kernels/owned_segments.h"

namespace shardc::cuda {

constexpr int UpdateThreads = 256;
/// A multiple of the elements that a block takes at once.
constexpr int64_t ElementsOfBlock = 4096;
/// Elements that a thread takes at once.
constexpr int UpdateWidth = 4;

template <class Factors>
struct UpdatedSegment {
  /// In elements of the slice.
  int64_t begin = 0;
  int64_t end = 0;
  /// The first of the segment's blocks.
  int64_t first_block = 0;
  Factors factors;
};

/// So many of them as the parameters of a launch, which takes 4 KiB, have beside the others.
template <class Factors>
struct UpdatedSegments {
  static constexpr int Most = 48;
  int count = 0;
  UpdatedSegment<Factors> segments[Most];
};

template <class Factors>
__device__ __forceinline__ auto SegmentOfBlock(const UpdatedSegments<Factors>& all) -> const UpdatedSegment<Factors>& {
  int i = all.count - 1;
  while (all.segments[i].first_block > BlockX()) {
    --i;
  }
  return all.segments[i];
}

/// Calls update(i, width) for each element i of the block, or for the first of `width` of them: a
/// std::integral_constant of N or 1.
template <int N, class Factors, class Update>
__device__ __forceinline__ auto ForElementsOfBlock(const UpdatedSegment<Factors>& segment, const Update& update)
    -> void {
  const int64_t first = segment.begin / UpdateWidth * UpdateWidth + (BlockX() - segment.first_block) * ElementsOfBlock;
  const int64_t end = first + ElementsOfBlock < segment.end ? first + ElementsOfBlock : segment.end;
  for (int64_t i = first + Thread() * N; i < end; i += UpdateThreads * N) {
    if (i >= segment.begin && i + N <= end) {
      update(i, std::integral_constant<int, N>{});
      continue;
    }
    for (int64_t k = i; k < i + N; ++k) {
      if (k >= segment.begin && k < end) {
        update(k, std::integral_constant<int, 1>{});
      }
    }
  }
}

/// Launches kernel(segments, arguments...) until all shares are updated, most often once.
template <class Op, class Factors, class... Parameters, class... Arguments>
auto LaunchUpdates(DeviceStream stream, const Op& op, const std::vector<UpdateShare>& shares,
                   const ScalarTable& scalars, void (*kernel)(UpdatedSegments<Factors>, Parameters...),
                   Arguments... arguments) -> Status {
  UpdatedSegments<Factors> all;
  int64_t blocks = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    const Interval& in_slice = shares[i].in_slice;
    all.segments[all.count++] = {.begin = in_slice.begin,
                                 .end = in_slice.end,
                                 .first_block = blocks,
                                 .factors = FactorsOf(op, shares[i], scalars)};
    blocks += BlocksFor(in_slice.end - in_slice.begin / UpdateWidth * UpdateWidth, ElementsOfBlock);
    if (all.count == all.Most || i + 1 == shares.size()) {
      RETURN_IF_ERROR(Launch(stream, {.grid = {blocks}, .threads = UpdateThreads}, kernel, all, arguments...));
      all.count = 0;
      blocks = 0;
    }
  }
  return Success{};
}

/// Returns true if vectors of UpdateWidth elements may be read and written at all of these values, at any moment.
inline auto IsUpdatedInPacks(Binder& binder, std::initializer_list<ValueId> values) -> bool {
  return std::ranges::all_of(values, [&](ValueId value) {
    return !value.valid() || HasRowsOfPacks<UpdateWidth>(binder, UpdateWidth, {value});
  });
}

}  // namespace shardc::cuda
