#include "compiler/explain/figures.h"

#include <algorithm>

#include "compiler/ops/communicators.h"
#include "compiler/ops/ops.h"
#include "compiler/plan/loops.h"

namespace shardc {

auto StepWireOf(const Plan& plan) -> Bytes {
  Bytes wire;
  for (const Communication& row : CommunicationOf(plan, SectionKind::Step)) {
    wire += row.wire(plan.mesh);
  }
  return wire;
}

auto FiguresOf(const Plan& plan) -> PlanFigures {
  PlanFigures figures{.reserved = ReservedBytes(plan),
                      .communicators = NcclCommunicatorsOf(plan).bytes(),
                      .flops = StepFlopsOf(plan),
                      .wire = StepWireOf(plan)};
  for (int section = 0; section < NumSections; ++section) {
    for (const MemoryUse& use : MemoryOverOps(plan, static_cast<SectionKind>(section))) {
      figures.peak = std::max(figures.peak, use.total());
    }
  }
  return figures;
}

auto CheckpointBytesOf(const Plan& plan) -> Bytes {
  std::vector<bool> is_counted(plan.parameters.size());
  Bytes bytes;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    int64_t element_bytes = 0;
    for (const StateRole role : StateRoles) {
      element_bytes += HasRole(sub_vector, role) ? SizeOf(StateTypeOf(plan, sub_vector, role)) : 0;
    }
    for (const Segment& segment : sub_vector.segments) {
      const auto index = static_cast<size_t>(segment.parameter.index);
      if (!is_counted[index]) {
        bytes += Bytes{plan.parameters[segment.parameter].num_elements() * element_bytes};
        is_counted[index] = true;
      }
    }
  }
  return bytes;
}

}  // namespace shardc
