// sum_squares: the squared norm of the owned gradient, and the first parameter with an element that is not finite.
//
// The square of a finite f32 is finite in f64, and so is any sum of them here: a segment has a NaN or an infinity if
// and only if its sum is not finite, and the check costs nothing. Each segment is cut in a fixed number of parts,
// summed in order.
#include <array>
#include <cmath>

#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"
#include "runtime/kernels/owned_segments.h"

namespace shardc::cpu {

constexpr int64_t Parts = 64;

static auto SumSquaresInParts(const Loops& loops, const float* x, int64_t n) -> double {
  std::array<double, Parts> sums{};
  ParallelRanges(Parts, CeilDiv(ElementsPerThread * Parts, n), [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = n * part / Parts;
      sums[static_cast<size_t>(part)] = loops.SumSquares(x + first, n * (part + 1) / Parts - first);
    }
  });
  double total = 0;
  for (const double sum : sums) {
    total += sum;
  }
  return total;
}

auto Bind(const op::SumSquares& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  CheckSliceLength(plan, op.gradient, op.sub_vector, binder.rank());
  const bool adds = AddsOnto(binder, op.sum, op.sum_onto);
  const bool keeps_least = AddsOnto(binder, op.bad, op.bad_onto);
  return BindOver(
      [segments = OwnedSegments(plan, op.sub_vector, binder.rank()), num_parameters = int64_t{plan.parameters.size()},
       adds, keeps_least, &loops = LoopsOf(plan)](const float* gradient_N, double* sum_1, int64_t* bad_1) {
        double total = 0;
        int64_t least_bad = num_parameters;
        for (const OwnedSegment& segment : segments) {
          const double squares = SumSquaresInParts(loops, gradient_N + segment.in_slice.begin, segment.in_slice.size());
          total += segment.counted_in_norm ? squares : 0;
          if (!std::isfinite(squares)) {
            least_bad = std::min(least_bad, int64_t{segment.parameter.index});
          }
        }
        *sum_1 = (adds ? *sum_1 : 0) + total;
        *bad_1 = keeps_least ? std::min(*bad_1, least_bad) : least_bad;
      },
      Resolve<const float>(binder, op.gradient), Resolve<double>(binder, op.sum), Resolve<int64_t>(binder, op.bad));
}

}  // namespace shardc::cpu
