// The few numbers of a plan that decide between recipes.
#pragma once

#include "compiler/cost/memory_walk.h"
#include "compiler/cost/step_time.h"
#include "compiler/ops/communication.h"
#include "compiler/ops/step_flops.h"

namespace shardc {

/// Returns the bytes that one rank sends in a step.
auto StepWireOf(const Plan& plan) -> Bytes;

/// Each of one rank. Plans are equal in them if all but the time are.
struct PlanFigures {
  /// The most that is alive at once, in any section; and the arenas, which hold it.
  Bytes peak;
  Bytes reserved;
  /// Memory of the GPU that communicators between hosts take beside the arenas.
  Bytes communicators;
  /// On CPUs: what it takes outside the arenas, with its share of what the ranks of a host have in common.
  Bytes outside;
  StepFlops flops;
  Bytes wire;
  /// StepTimeOf, which the others decide together with the order of the ops.
  std::optional<StepTime> time;

  friend auto operator==(const PlanFigures& a, const PlanFigures& b) -> bool {
    return a.peak == b.peak && a.reserved == b.reserved && a.communicators == b.communicators &&
           a.outside == b.outside && a.flops.model == b.flops.model && a.flops.recompute == b.flops.recompute &&
           a.wire == b.wire;
  }
};
/// Takes the machine as StepTimeOf does.
auto FiguresOf(const Plan& plan, const MachineRow* machine = nullptr) -> PlanFigures;
/// Returns the same, but of memory what no packing of the buffers and no shorter list of ops can make less.
auto LeastFiguresOf(const Plan& plan, const PlanFigures& figures) -> PlanFigures;

/// A rational number.
struct Share {
  int64_t part = 0;
  int64_t of = 1;
};
/// Returns the figures on the line through those of two plans, beyond the second by this share of what lies between
/// them. Requires: both plans have a time, or none has.
auto Beyond(const PlanFigures& first, const PlanFigures& second, const Share& share) -> PlanFigures;

/// Returns the bytes of the state that a save writes, without headers: the elements of parameters and moments, each
/// once.
auto CheckpointBytesOf(const Plan& plan) -> Bytes;
/// Returns the bytes of the parameters that checkpoints leave to the base.
auto BytesInBaseOf(const Plan& plan) -> Bytes;

}  // namespace shardc
