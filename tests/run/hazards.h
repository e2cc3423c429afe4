// The verifier's claim about order, worked out the long way: every pair of op runs that touch the same bytes or scalar,
// over all repeats and ranks, against all that follows from streams and events. Quadratic; shares no code with it.
#pragma once

#include <array>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

class Hazards {
 public:
  /// Finds the pairs of turns on different streams, one of which writes what the other touches.
  explicit Hazards(const Plan& plan);

  /// Those that nothing orders, by the streams and events of `plan`: the one above, or one with other events.
  auto CountUnordered(const Plan& plan) const -> int64_t;

 private:
  struct Pair {
    size_t earlier = 0;
    size_t later = 0;
  };
  std::array<std::vector<Pair>, NumSections> pairs_;
};

}  // namespace shardc
