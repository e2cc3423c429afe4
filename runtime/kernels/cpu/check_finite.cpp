// check_finite: the first tensor of the state, by parameter and role, of which the owned elements are not all finite.
// Padding does not count.
#include <algorithm>
#include <atomic>

#include "compiler/plan/state_index.h"
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"
#include "runtime/kernels/owned_segments.h"

namespace shardc::cpu {

auto Bind(const op::CheckFinite& op, Binder& binder) -> Kernel {
  return ForElementType(binder.ViewOf(op.shard).dtype, [&]<class T>() -> Kernel {
    // T: the type that the state is kept in.
    const Plan& plan = binder.plan();
    CheckSliceLength(plan, op.shard, op.sub_vector, binder.rank());
    const bool keeps_least = AddsOnto(binder, op.bad, op.bad_onto);
    return BindOver(
        [segments = OwnedSegments(plan, op.sub_vector, binder.rank()), role = op.role,
         none = StateIndex(ParameterId{plan.parameters.size()}, StateRole{}), keeps_least,
         all_finite = LoopsOf(plan).Of<T>().AllFinite](const T* shard_N, int64_t* bad_1) {
          int64_t least = keeps_least ? *bad_1 : none;
          for (const OwnedSegment& segment : segments) {
            std::atomic<bool> is_finite = true;
            ParallelRanges(segment.in_slice.size(), ElementsPerThread, [&](int64_t begin, int64_t end) {
              if (!all_finite(shard_N + segment.in_slice.begin + begin, end - begin)) {
                is_finite.store(false, std::memory_order_relaxed);
              }
            });
            least = is_finite ? least : std::min(least, StateIndex(segment.parameter, role));
          }
          *bad_1 = least;
        },
        Resolve<const T>(binder, op.shard), Resolve<int64_t>(binder, op.bad));
  });
}

}  // namespace shardc::cpu
