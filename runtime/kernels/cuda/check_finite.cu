// check_finite: the first tensor of the state, by parameter and role, of which the owned elements are not all finite.
// Padding does not count.
#include "compiler/plan/state_index.h"
#include "runtime/kernels/cuda/segment_sums.h"
#include "runtime/kernels/owned_segments.h"

namespace shardc::cuda {

static __global__ void __launch_bounds__(RangeThreads)
    FinishCheck(const RangeSum* sums, int64_t ranges, bool keeps_least, int64_t* bad) {
  const RangeSum all = SumOfRanges(sums, ranges);
  if (Thread() == 0) {
    *bad = keeps_least && *bad < all.bad ? *bad : all.bad;
  }
}

auto Bind(const op::CheckFinite& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.shard).dtype, [&]<class T>() -> Kernel {
    // T: the type that the state is kept in.
    const Plan& plan = binder.plan();
    CheckSliceLength(plan, op.shard, op.sub_vector, binder.rank());
    return [stream = StreamOf(binder.queue()), shard = Resolve<const T>(binder, op.shard),
            length = binder.ViewOf(op.shard).num_elements(), bad = Resolve<int64_t>(binder, op.bad),
            sums = ScratchOf<RangeSum>(op, binder),
            segments = CheckedSegmentsOf(plan, op.sub_vector, binder.rank(),
                                         [&](ParameterId parameter) { return StateIndex(parameter, op.role); }),
            none = StateIndex(ParameterId{plan.parameters.size()}, StateRole{}),
            keeps_least = AddsOnto(binder, op.bad, op.bad_onto)](const Moment& moment) -> Status {
      RETURN_IF_ERROR(SumSegments(stream, shard.At(moment), length, segments, none, sums.At(moment)));
      return Launch(stream, {.threads = RangeThreads}, FinishCheck, sums.At(moment), NumRanges(length), keeps_least,
                    bad.At(moment));
    };
  });
}

}  // namespace shardc::cuda
