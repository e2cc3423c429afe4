// sum_squares: the squared norm of the owned gradient, and the first parameter with an element that is not finite.
#include "runtime/kernels/cuda/segment_sums.h"
#include "runtime/kernels/owned_segments.h"

namespace shardc::cuda {

static __global__ void __launch_bounds__(RangeThreads)
    FinishSquares(const RangeSum* sums, int64_t ranges, bool adds, bool keeps_least, double* sum, int64_t* bad) {
  const RangeSum all = SumOfRanges(sums, ranges);
  if (Thread() == 0) {
    *sum = (adds ? *sum : 0) + all.squares;
    *bad = keeps_least && *bad < all.bad ? *bad : all.bad;
  }
}

auto Bind(const op::SumSquares& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  CheckSliceLength(plan, op.gradient, op.sub_vector, binder.rank());
  return [stream = StreamOf(binder.queue()), gradient = Resolve<const float>(binder, op.gradient),
          length = binder.ViewOf(op.gradient).num_elements(), sum = Resolve<double>(binder, op.sum),
          bad = Resolve<int64_t>(binder, op.bad), sums = ScratchOf<RangeSum>(op, binder),
          segments = CheckedSegmentsOf(plan, op.sub_vector, binder.rank(),
                                       [](ParameterId parameter) { return int64_t{parameter.index}; }),
          num_parameters = int64_t{plan.parameters.size()}, adds = AddsOnto(binder, op.sum, op.sum_onto),
          keeps_least = AddsOnto(binder, op.bad, op.bad_onto)](const Moment& moment) -> Status {
    RETURN_IF_ERROR(SumSegments(stream, gradient.At(moment), length, segments, num_parameters, sums.At(moment)));
    return Launch(stream, {.threads = RangeThreads}, FinishSquares, sums.At(moment), NumRanges(length), adds,
                  keeps_least, sum.At(moment), bad.At(moment));
  };
}

}  // namespace shardc::cuda
