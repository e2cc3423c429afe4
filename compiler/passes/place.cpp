// Places every value over the mesh.
//
// Needs: build. Gives: the placement of each value per axis; sums over ranks made whole.
//   1. over tp, each rank computes with its part of the matrices (tensor_parallel.cpp)
//   2. samples are dealt out over the data axes: what load_tokens writes is shard(batch dim)
//   3. an op's results follow its operands: sharded in, sharded out, at the dim where the result keeps the batch
//   4. sums over samples (loss, token counts) are partial(sum); where such a sum is complete, after its loop if it is
//      carried through one, an all_reduce makes it whole for all that read it
#include <algorithm>
#include <unordered_map>

#include "compiler/ops/emitter.h"
#include "compiler/ops/placement_rule.h"
#include "compiler/ops/rewrite.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/tensor_parallel.h"
#include "compiler/plan/loops.h"

namespace shardc {

namespace {

class Placer {
 public:
  Placer(Plan* plan, const Recipe& recipe)
      : plan_(*plan), recipe_(recipe), axes_(Spread(plan->mesh, AxesSharing(Shared::Samples))) {}

  auto Run(Section& section) -> void {
    std::vector<Op> ops;
    ops.reserve(section.ops.size());
    std::unordered_map<BufferId, size_t> last_addition;
    for (size_t i = 0; i < section.ops.size(); ++i) {
      for (const Access& access : AccessesOf(section.ops[i].body)) {
        if (IsSum(section.ops[i].body, access)) {
          last_addition[BufferOf(access.value)] = i;
        }
      }
    }
    for (size_t i = 0; i < section.ops.size(); ++i) {
      Op& op = section.ops[i];
      ReplaceReads(op.body, [&](ValueId& id) { id = WholeOf(id); });
      PlaceResults(op.body);
      loops_.Enter(op);
      ops.push_back(std::move(op));
      if (!loops_.in_loop()) {
        MakeWhole(ops, [&](ValueId sum) { return last_addition.at(BufferOf(sum)) <= i; });
      }
    }
    section.ops = std::move(ops);
  }

  /// Returns why an op cannot be computed of a rank's samples; empty if each can.
  auto refusal() const -> const std::string& { return refusal_; }

 private:
  /// A sum over samples: its name, and the axes over which it is partial.
  struct Sum {
    ValueId value;
    AxisSet axes;
  };

  auto PlaceResults(const OpBody& body) -> void {
    const AccessList accesses = AccessesOf(body);
    for (const Access& access : accesses) {
      if (access.kind == AccessKind::Read) {
        PlaceView(plan_.values[access.value]);
      }
    }
    const PlacementRule rule(body, accesses, plan_);
    for (size_t i = 0; i < NumMeshAxes; ++i) {
      const auto axis = static_cast<Axis>(i);
      if (!axes_.Has(axis)) {
        continue;
      }
      const DerivedPlacements by_rule = rule.Over(axis);
      refusal_ = refusal_.empty() ? by_rule.refusal.text : refusal_;
      for (size_t k = 0; k < accesses.size(); ++k) {
        if (accesses[k].kind != AccessKind::Read && !IsSum(body, accesses[k])) {
          Value& value = plan_.values[accesses[k].value];
          value.placement[static_cast<size_t>(axis)] = by_rule.results[k].value_or(Placement{});
        }
      }
    }
    for (const Access& access : accesses) {
      if (access.kind != AccessKind::Read && IsSum(body, access)) {
        Add(access, SumAxes(body));
      } else if (access.kind != AccessKind::Read && plan_.values[access.value].placement != Placements{} &&
                 FactsOf(body).meaning != Meaning::Renamed) {
        placements_[BufferOf(access.value)] = plan_.values[access.value].placement;
      }
    }
  }

  /// Places a view under a name that no op wrote as what it is a view of.
  auto PlaceView(Value& value) -> void {
    const auto placed = placements_.find(value.buffer);
    if (placed == placements_.end()) {
      return;
    }
    if (value.dtype == DType::I32) {
      // Host samples: [accumulate,] S, B.
      SetPlacement(axes_, Placement::Shard(static_cast<int>(value.shape.size()) - 1), value.placement);
    } else if (value.placement == Placements{}) {
      value.placement = placed->second;
    }
  }

  /// Returns true if this result is a sum over samples.
  auto IsSum(const OpBody& body, const Access& access) const -> bool {
    return FactsOf(body).sums_samples && access.kind != AccessKind::Read &&
           plan_.values[access.value].dtype == DType::F64;
  }

  /// Returns the axes whose ranks have different terms of it.
  auto SumAxes(const OpBody& body) const -> AxisSet {
    const auto* of_vocabulary = AttributeOf<AxisSet>(body, "vocab_axes");
    return of_vocabulary == nullptr ? axes_ : axes_ | *of_vocabulary;
  }

  /// Notes under which name a sum will be read when it is complete: carried through a loop, the name before it; else
  /// the last.
  auto Add(const Access& access, AxisSet axes) -> void {
    SetPlacement(axes, Placement::Partial(), plan_.values[access.value].placement);
    const auto same = std::find_if(pending_.begin(), pending_.end(),
                                   [&](const Sum& sum) { return BufferOf(sum.value) == BufferOf(access.value); });
    if (same == pending_.end()) {
      pending_.push_back({loops_.in_loop() && access.kills.valid() ? access.kills : access.value, axes});
    } else if (!loops_.in_loop()) {
      same->value = access.value;
    }
  }

  /// Emits an all_reduce for every sum that is complete here.
  template <class IsComplete>
  auto MakeWhole(std::vector<Op>& ops, const IsComplete& is_complete) -> void {
    std::vector<Sum> open;
    for (const Sum& sum : std::exchange(pending_, {})) {
      if (!is_complete(sum.value)) {
        open.push_back(sum);
        continue;
      }
      SetPlacement(sum.axes, Placement::Partial(), plan_.values[sum.value].placement);
      if (sum.axes == AxisSet{}) {
        continue;
      }
      Emitter emitter(&plan_, &ops, PassKind::Place);
      emitter.set_origin(OriginOfAxis(sum.axes));
      const Value& value = plan_.values[sum.value];
      const ValueId whole = emitter.Alias(sum.value, {value.dtype, value.shape}, value.name + ".whole");
      emitter.Emit(op::AllReduce{.x = sum.value, .y = whole, .axes = sum.axes});
      whole_of_[sum.value] = whole;
    }
    pending_ = std::move(open);
  }

  /// Returns the key that makes such a sum necessary: the first of several.
  auto OriginOfAxis(AxisSet axes) const -> Origin {
    return axes.Has(Axis::Dp)          ? OriginOf(recipe_.mesh.dp, "mesh.dp")
           : axes.Has(Axis::Replicate) ? OriginOf(recipe_.mesh.replicate, "mesh.replicate")
                                       : OriginOf(recipe_.mesh.tp, "mesh.tp");
  }
  auto BufferOf(ValueId id) const -> BufferId { return plan_.values[id].buffer; }
  auto WholeOf(ValueId id) const -> ValueId {
    const auto found = whole_of_.find(id);
    return found == whole_of_.end() ? id : found->second;
  }

  Plan& plan_;
  const Recipe& recipe_;
  /// The axes along which ranks see different samples.
  AxisSet axes_;
  std::string refusal_;
  LoopTracker loops_;
  /// Placements of what was last written on each buffer of samples.
  std::unordered_map<BufferId, Placements> placements_;
  /// Sums that later ops add to, one name a buffer.
  std::vector<Sum> pending_;
  std::unordered_map<ValueId, ValueId> whole_of_;
};

}  // namespace

auto Place(Plan plan, PassContext& context) -> ErrorOr<Plan> {
  if (plan.mesh.size(Axis::Tp) > 1) {
    RETURN_IF_ERROR(SpreadOverTp(plan, OriginOf(context.recipe->mesh.tp, "mesh.tp")));
  }
  Placer placer(&plan, *context.recipe);
  placer.Run(plan.section(SectionKind::Data));
  placer.Run(plan.section(SectionKind::Step));
  placer.Run(plan.section(SectionKind::Eval));
  CHECK(placer.refusal().empty(), "samples cannot be dealt out: {}", placer.refusal());
  return plan;
}

}  // namespace shardc
