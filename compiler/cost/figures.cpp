#include "compiler/cost/figures.h"

#include <algorithm>
#include <functional>

#include "compiler/base/devices.h"
#include "compiler/ops/communicators.h"
#include "compiler/ops/cpu/outside_arenas.h"
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

/// Returns the part of a rank in it; nothing on GPUs, which have memory of their own.
static auto OutsideOfRank(const Plan& plan, const OutsideArenas& outside) -> Bytes {
  return FactsOf(plan.device).family == DeviceFamily::Cpu
             ? outside.rank() + Bytes{CeilDiv(outside.host().value, outside.num_ranks)}
             : Bytes{};
}

auto FiguresOf(const Plan& plan, const MachineRow* machine) -> PlanFigures {
  PlanFigures figures{.reserved = ReservedBytes(plan),
                      .communicators = NcclCommunicatorsOf(plan).bytes(),
                      .outside = OutsideOfRank(plan, OutsideArenasOf(plan)),
                      .flops = StepFlopsOf(plan),
                      .wire = StepWireOf(plan),
                      .time = StepTimeOf(plan, machine)};
  for (int section = 0; section < NumSections; ++section) {
    Bytes now = PersistentUse(plan).total();
    WalkLives(
        plan, static_cast<SectionKind>(section), [&](BufferId id) { now += plan.buffers[id].bytes; },
        [&](size_t) { figures.peak = std::max(figures.peak, now); },
        [&](BufferId id) { now -= plan.buffers[id].bytes; });
  }
  return figures;
}

auto LeastFiguresOf(const Plan& plan, const PlanFigures& figures) -> PlanFigures {
  PlanFigures least = figures;
  least.reserved = LeastReserved(plan);
  least.outside = OutsideOfRank(plan, {.num_ranks = plan.mesh.ranks_per_host()});
  return least;
}

auto Beyond(const PlanFigures& first, const PlanFigures& second, const Share& share) -> PlanFigures {
  const auto line = [&](auto field) {
    const auto begin = std::invoke(field, first);
    auto end = std::invoke(field, second);
    // Products of FLOPs take more than 64 bits.
    using Wide = __int128;
    end.value += static_cast<int64_t>(Wide{end.value - begin.value} * share.part / share.of);
    return end;
  };
  PlanFigures beyond{.peak = line(&PlanFigures::peak),
                     .reserved = line(&PlanFigures::reserved),
                     .communicators = line(&PlanFigures::communicators),
                     .outside = line(&PlanFigures::outside),
                     .flops = {.model = line([](const PlanFigures& each) { return each.flops.model; }),
                               .recompute = line([](const PlanFigures& each) { return each.flops.recompute; })},
                     .wire = line(&PlanFigures::wire),
                     .time = second.time};
  if (beyond.time) {
    for (const auto part : {&StepTime::products, &StepTime::attention, &StepTime::others, &StepTime::peers,
                            &StepTime::host, &StepTime::evaluation}) {
      const double each = ((*second.time).*part).value - ((*first.time).*part).value;
      ((*beyond.time).*part).value += each * static_cast<double>(share.part) / static_cast<double>(share.of);
    }
  }
  return beyond;
}

auto BytesInBaseOf(const Plan& plan) -> Bytes {
  Bytes bytes;
  for (const Parameter& parameter : plan.parameters) {
    bytes += Bytes{parameter.in_base ? parameter.num_elements() * SizeOf(parameter.dtype) : 0};
  }
  return bytes;
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
      if (!is_counted[index] && !plan.parameters[segment.parameter].in_base) {
        bytes += Bytes{plan.parameters[segment.parameter].num_elements() * element_bytes};
        is_counted[index] = true;
      }
    }
  }
  return bytes;
}

}  // namespace shardc
