// Placements: what is one rank's term of a sum is read by the collective that makes it whole, or goes on as a term,
// added to others or in another type, and by nothing else; and no collective sums what its ranks have whole.
#include "compiler/ops/verify_internal.h"

namespace shardc {

/// The axes, of more than one rank, along which a value is a term of a sum.
static auto PartialAxes(const Plan& plan, ValueId id) -> AxisSet {
  return Spread(plan.mesh, AxesPlaced(plan.values[id].placement, Placement::Partial()));
}

/// The axes, of more than one rank, over which an op sums a value of its.
static auto SummedAxes(const Plan& plan, const Op& op) -> AxisSet {
  const CollectiveKind kind = FactsOf(op).collective;
  const bool sums = kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllReduce;
  return sums ? Spread(plan.mesh, CollectiveOf(op)->axes) : AxisSet{};
}

auto VerifyPlacements(const Plan& plan, Findings& findings) -> void {
  if (!plan.Established(PassKind::Place)) {
    return;
  }
  ForEachOp(plan, [&](SectionKind section, size_t index, const Op& op) {
    // Terms may go on from pass to pass of a loop as they are. After an op that is wrong, others read what it made.
    const Meaning meaning = FactsOf(op).meaning;
    if (meaning == Meaning::Renamed || !findings.empty()) {
      return;
    }
    const AxisSet summed = SummedAxes(plan, op);
    const auto accesses = AccessesOf(op.body);
    // The result of a collective, of an addition or of a cast may be a term of a sum over more axes.
    AxisSet left = summed;
    if (summed != AxisSet{} || meaning == Meaning::Sum || meaning == Meaning::Cast) {
      for (const Access& access : accesses) {
        left = access.kind == AccessKind::Read ? left : left | PartialAxes(plan, access.value);
      }
    }
    for (const Access& access : accesses) {
      if (access.kind != AccessKind::Read) {
        continue;
      }
      const AxisSet partial = PartialAxes(plan, access.value);
      if ((partial | left) != left) {
        findings.AddOp(section, index, "partial-read"_rule, "reads {}, which is a term of a sum over {}", access.field,
                       ToText(partial));
      } else if ((partial | summed) != partial) {
        findings.AddOp(section, index, "whole-summed"_rule, "sums {} over {}; it is a term over {}", access.field,
                       ToText(summed), ToText(partial));
      }
    }
  });
}

}  // namespace shardc
