#include "compiler/passes/tensor_parallel.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/ops/emitter.h"
#include "compiler/ops/placement_rule.h"
#include "compiler/ops/rewrite.h"
#include "compiler/plan/local_parameter.h"

namespace shardc {

namespace {

constexpr AxisSet Tp = AxisSet::Of(Axis::Tp);

auto Resize(Plan& plan, ValueId id, const Dims& shape) -> void {
  plan.values[id].shape = shape;
  plan.buffers[plan.values[id].buffer].bytes = plan.values[id].bytes();
}

auto CutParameters(Plan& plan) -> void {
  for (const ValueId id : plan.values.ids()) {
    if (const ParameterId parameter_id = plan.values[id].role.parameter(); parameter_id.valid()) {
      const Parameter& parameter = plan.parameters[parameter_id];
      Resize(plan, id, LocalShape(parameter, plan.mesh));
      plan.values[id].placement = parameter.placement;
    }
  }
}

/// The placement over tp of every value is kept where it belongs, in the plan; what is replicated there is whole.
class Spreader {
 public:
  Spreader(Plan* plan, std::vector<Op>* ops, Origin origin)
      : plan_(*plan), ops_(*ops), emitter_(plan, ops, PassKind::Place), origin_(std::move(origin)) {}

  auto Add(Op op) -> void {
    if (op.phase != Phase::Forward) {
      ops_.push_back(std::move(op));
      return;
    }
    emitter_.set_layer(op.layer);
    emitter_.set_phase(op.phase);
    emitter_.set_origin(op.origin);
    ReplaceReads(op.body, [&](ValueId& id) { id = Current(id); });
    VisitBody(op.body, [&](const auto& body) {
      using Body = std::remove_cvref_t<decltype(body)>;
      if constexpr (std::is_same_v<Body, op::CrossEntropy>) {
        AddLoss(body);
      } else {
        AddOp(body);
      }
    });
  }

  /// Returns why the forward cannot be spread; empty if it can.
  auto refusal() const -> const std::string& { return refusal_; }

 private:
  auto TpOf(ValueId id) -> Placement& { return plan_.values[id].placement[static_cast<size_t>(Axis::Tp)]; }
  auto IsSequence(ValueId id) -> bool { return TpOf(id) == Placement::Shard(0); }

  auto EmitCollective(OpBody body) -> void { emitter_.Emit(std::move(body)).origin = origin_; }

  /// Returns what stands for a value now. A value that is a part of what an op wrote becomes the same part of the
  /// whole.
  auto Current(ValueId id) -> ValueId {
    if (const auto found = current_.find(id); found != current_.end()) {
      return found->second;
    }
    const auto writer = written_.find(plan_.values[id].buffer);
    if (writer == written_.end() || writer->second == id) {
      return id;
    }
    const ValueId whole = Whole(Current(writer->second));
    Value& part = plan_.values[id];
    part.offset.base += plan_.values[whole].offset.base - plan_.values[writer->second].offset.base;
    part.buffer = plan_.values[whole].buffer;
    return current_[id] = id;
  }

  /// Returns a value of the whole sequence, gathered once.
  auto Whole(ValueId id) -> ValueId {
    if (!IsSequence(id)) {
      return id;
    }
    if (const auto found = gathered_.find(id); found != gathered_.end()) {
      return found->second;
    }
    const Value shard = plan_.values[id];
    Dims shape = shard.shape;
    shape[0] *= plan_.mesh.size(Axis::Tp);
    const ValueId full = emitter_.New({shard.dtype, shape}, Category::Activations, shard.name + ".gathered");
    EmitCollective(op::AllGather{.shard = id, .full = full, .axes = Tp});
    return gathered_[id] = full;
  }

  auto OverTp(const OpBody& body) const -> DerivedPlacements {
    return PlacementRule(body, AccessesOf(body), plan_).Over(Axis::Tp);
  }

  /// Returns the placements of the results of an op over tp. An op that cannot be computed on a rank's positions of the
  /// sequence alone gets the whole of its first operand, which is the activation.
  template <class Body>
  auto PlacementsOverTp(Body& body) -> DerivedPlacements {
    DerivedPlacements by_rule = OverTp(body);
    if (!by_rule.refusal.is_set()) {
      return by_rule;
    }
    OpBody whole = body;
    bool is_first = true;
    ReplaceReads(whole, [&](ValueId& id) { id = std::exchange(is_first, false) ? Whole(id) : id; });
    body = std::get<Body>(whole);
    DerivedPlacements of_whole = OverTp(body);
    if (refusal_.empty() && of_whole.refusal.is_set()) {
      refusal_ = fmt::format("{} cannot be spread over tp: {}", Body::Mnemonic, of_whole.refusal.text);
    }
    return of_whole;
  }

  template <class Body>
  auto AddOp(Body body) -> void {
    if constexpr (requires { body.vocab_axes; }) {
      body.vocab_axes = Tp;
    }
    const DerivedPlacements by_rule = PlacementsOverTp(body);
    const std::vector<ValueType> types = Shape(body, plan_);
    const AccessList accesses = AccessesOf(body);
    emitter_.Emit(body);
    size_t result = 0;
    for (size_t i = 0; i < accesses.size(); ++i) {
      const Access& access = accesses[i];
      if (access.kind == AccessKind::Read) {
        continue;
      }
      const ValueId id = access.value;
      written_[plan_.values[id].buffer] = id;
      if (access.kills.valid()) {
        const Value over = plan_.values[access.kills];
        plan_.values[id].buffer = over.buffer;
        plan_.values[id].offset = over.offset;
        plan_.values[id].shape = types[result].shape;
      } else {
        Resize(plan_, id, types[result].shape);
      }
      TpOf(id) = by_rule.results[i].value_or(Placement{});
      ++result;
    }
    for (const Access& access : accesses) {
      if (access.kind != AccessKind::Read && TpOf(access.value) == Placement::Partial()) {
        Scatter(access.value);
      }
    }
  }

  /// Emits the sum of a partial result, of which each rank keeps its positions of the sequence; it takes over the name.
  auto Scatter(ValueId partial) -> void {
    const Value full = plan_.values[partial];
    plan_.values[partial].name += ".partial";
    plan_.buffers[full.buffer].name += ".partial";
    Dims shape = full.shape;
    shape[0] /= plan_.mesh.size(Axis::Tp);
    const ValueId shard = emitter_.New({full.dtype, shape}, Category::Activations, full.name);
    TpOf(shard) = Placement::Shard(0);
    EmitCollective(op::ReduceScatter{.full = partial, .shard = shard, .shard_onto = {}, .axes = Tp});
    current_[partial] = shard;
  }

  auto AddLoss(const op::CrossEntropy& whole) -> void {
    const std::string name = plan_.values[whole.lse].name;
    const Value lse = plan_.values[whole.lse];
    op::LogSumExp own{.logits = whole.logits, .lse = {}, .vocab_axes = Tp, .head = whole.head};
    own.lse = emitter_.New({lse.dtype, lse.shape}, Category::Activations, name + ".own");
    emitter_.Emit(own);
    Dims shape = lse.shape;
    shape.insert(shape.begin(), plan_.mesh.size(Axis::Tp));
    const ValueId parts = emitter_.New({lse.dtype, shape}, Category::Activations, name + ".parts");
    EmitCollective(op::AllGather{.shard = own.lse, .full = parts, .axes = Tp});
    emitter_.Emit(op::ShardedCrossEntropy{.logits = whole.logits,
                                          .targets = whole.targets,
                                          .parts = parts,
                                          .loss = whole.loss,
                                          .loss_onto = whole.loss_onto,
                                          .lse = whole.lse,
                                          .vocab_axes = Tp,
                                          .head = whole.head});
  }

  Plan& plan_;
  std::vector<Op>& ops_;
  std::string refusal_;
  Emitter emitter_;
  Origin origin_;
  /// For values that collectives replaced.
  std::unordered_map<ValueId, ValueId> current_;
  std::unordered_map<ValueId, ValueId> gathered_;
  /// The value that was last written on each buffer, as it was built.
  std::unordered_map<BufferId, ValueId> written_;
};

}  // namespace

auto SpreadOverTp(Plan& plan, const Origin& origin) -> Status {
  CutParameters(plan);
  for (const SectionKind kind : {SectionKind::Step, SectionKind::Eval}) {
    const std::vector<Op> whole = std::move(plan.section(kind).ops);
    plan.section(kind).ops.clear();
    Spreader spreader(&plan, &plan.section(kind).ops, origin);
    for (const Op& op : whole) {
      spreader.Add(op);
    }
    FAIL_IF(!spreader.refusal().empty(), ExitCode::RecipeRejected, "mesh.tp: {}", spreader.refusal());
  }
  return Success{};
}

}  // namespace shardc
