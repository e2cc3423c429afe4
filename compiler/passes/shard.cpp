// Shards the parameters: units, gathers, reduce-scatters, the microbatch loop.
//
// Needs: forward and backward ops over whole parameters. Gives: state as owned slices; parameters as views of gathered
// units; gradients as views of reduce-scatter inputs.
//   1. make the units, and the slices of parameters and optimizer state that each rank owns
//   2. in `step` and `eval`, gather a unit before its first use; in `step` gather it again before its first use in
//      backward, if it is resharded after forward: from all of dp, or from the ranks of dp_inner, if there are groups
//      of these. Then each rank keeps its part of the group's, by a copy after the last use in forward. With one rank
//      on the axis the slice is the whole: views, no gather
//   3. move the gradients into one vector per unit, clear its padding, and reduce-scatter it after its last write
//   4. with more than one microbatch, loop over them (microbatch_loop.cpp)
//   5. sum the slices over the ranks that hold the same (sum_over_replicas.cpp)
//
// Where buffers end is not said here: schedule releases each after its last use.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "compiler/ops/emitter.h"
#include "compiler/ops/rewrite.h"
#include "compiler/passes/gradient_slice.h"
#include "compiler/passes/microbatch_loop.h"
#include "compiler/passes/optimizers.h"
#include "compiler/passes/shard_units.h"
#include "compiler/passes/sum_over_replicas.h"
#include "compiler/plan/local_parameter.h"

namespace shardc {

static auto ArenaOf(GatherInto into) -> Arena {
  switch (into) {
    case GatherInto::Rank: return Arena::Transient;
    case GatherInto::Host: return Arena::Gathered;
  }
  CHECK(false, "gather_into {}", static_cast<int>(into));
}

/// Returns true if whole gradients are summed over the microbatches, and reduced once.
static auto ReducesLast(BatchReduce reduce) -> bool {
  switch (reduce) {
    case BatchReduce::Each: return false;
    case BatchReduce::Last: return true;
  }
  CHECK(false, "reduce {}", static_cast<int>(reduce));
}

namespace {

class Sharder {
 public:
  Sharder(Plan* plan, const PassContext& context, const std::vector<UnitChoice>& units)
      : plan_(*plan),
        reduces_last_(plan->run.accumulate > 1 && ReducesLast(*context.recipe->batch.reduce)),
        units_origin_(OriginOf(context.recipe->shard.units, "shard.units")),
        kept_origin_(OriginOf(context.recipe->shard.reshard_size, "shard.reshard_size")),
        gathered_arena_(ArenaOf(*context.recipe->shard.gather_into)),
        kept_roles_(KeptRoles(context.recipe->optimizer, *plan)) {
    homes_ = MakeUnits(plan_, units);
    for (const SubVector& sub_vector : plan_.sub_vectors) {
      reduce_types_.push_back(units[static_cast<size_t>(sub_vector.unit.index)].reduce);
    }
  }

  auto MakeState() -> void;
  auto GatherParameters(Section& section) -> void;
  auto ReduceGradients(Section& section) -> void;
  auto reduces_last() const -> bool { return reduces_last_; }
  /// Returns the type in which the gradients of each sub-vector are sent.
  auto reduce_types() const -> const std::vector<DType>& { return reduce_types_; }

 private:
  auto Degree(const SubVector& sub_vector) const -> int64_t { return plan_.mesh.size(sub_vector.axes); }
  /// Returns true if the gradient that backward writes is one of several, over ranks or microbatches.
  auto IsSummed(const SubVector& sub_vector) const -> bool {
    return Degree(sub_vector) > 1 || plan_.run.accumulate > 1 || CopyAxes(sub_vector, plan_.mesh) != AxisSet{};
  }
  auto HomeOf(ParameterId id) const -> const ParameterHome& { return homes_[static_cast<size_t>(id.index)]; }
  /// Returns the sub-vectors whose parameters an op reads.
  auto HomesReadBy(const Op& op) const -> std::vector<SubVectorId>;
  /// Returns what is gathered together: for each sub-vector that ops of a half of the section read, those of its unit
  /// that are read in that half too.
  auto GatherGroups(const Section& section, bool in_backward) const
      -> std::unordered_map<SubVectorId, std::vector<SubVectorId>>;
  /// Makes the vector of a sub-vector's gradients.
  auto MakeGradients(SubVectorId id, Emitter& emitter) -> ValueId;
  /// Moves the gradients of parameters into the vectors of their sub-vectors.
  auto MoveGradients(const std::vector<ValueId>& vectors) -> void;
  auto ClearPadding(SubVectorId id, ValueId full, Emitter& emitter) -> void;
  auto Reduce(SubVectorId id, ValueId full, Emitter& emitter) -> void;
  /// Returns the whole vector of a unit, gathered by an op appended to `ops`, from its slices or from what was kept of
  /// it; or the slice itself, if it is the whole.
  auto Gather(SubVectorId id, std::optional<ValueId> kept, std::vector<Op>& ops, const Op& before) -> ValueId;
  /// Returns this rank's part, among the ranks of dp_inner, of a vector that was gathered for forward. An op put into
  /// `ops` copies it after `last_use`.
  auto Keep(SubVectorId id, ValueId full, const Op& last_use, std::vector<Op>& ops) -> ValueId;

  Plan& plan_;
  /// Whole gradients are summed over the microbatches, and reduced after their loop.
  bool reduces_last_;
  Origin units_origin_;
  Origin kept_origin_;
  Arena gathered_arena_;
  std::vector<StateRole> kept_roles_;
  std::vector<DType> reduce_types_;
  std::vector<ParameterHome> homes_;
};

auto Sharder::MakeState() -> void {
  std::vector<Op> none;
  Emitter emitter(&plan_, &none, PassKind::Shard);
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    SubVector& sub_vector = plan_.sub_vectors[id];
    const auto slice = [&](DType dtype, Category category, std::string_view suffix, Arena arena) {
      return MakeSlice(id, dtype, emitter, category, suffix, arena);
    };
    // Peers read what is gathered: the parameters themselves, or their copy in the compute type.
    const DType master = StateTypeOf(plan_, sub_vector, StateRole::Parameter);
    const bool copied = sub_vector.compute != master;
    sub_vector.shard =
        slice(master, Category::Parameters, "shard", copied ? Arena::Persistent : Arena::SharedPersistent);
    if (copied) {
      sub_vector.compute_copy = slice(sub_vector.compute, Category::Parameters, "copy", Arena::SharedPersistent);
    }
    if (!sub_vector.trainable) {
      continue;
    }
    for (const StateRole role : kept_roles_) {
      StateOf(sub_vector, role) = slice(DType::F32, Category::Moments, ToText(role), Arena::Persistent);
    }
  }
}

auto Sharder::HomesReadBy(const Op& op) const -> std::vector<SubVectorId> {
  std::vector<SubVectorId> homes;
  for (const Access& access : AccessesOf(op.body)) {
    if (const ParameterId parameter = plan_.values[access.value].role.parameter(); parameter.valid()) {
      homes.push_back(HomeOf(parameter).sub_vector);
    }
  }
  return homes;
}

auto Sharder::GatherGroups(const Section& section, bool in_backward) const
    -> std::unordered_map<SubVectorId, std::vector<SubVectorId>> {
  std::map<UnitId, std::set<SubVectorId>> of_unit;
  for (const Op& op : section.ops) {
    if (IsBackward(op) == in_backward) {
      for (const SubVectorId id : HomesReadBy(op)) {
        of_unit[plan_.sub_vectors[id].unit].insert(id);
      }
    }
  }
  std::unordered_map<SubVectorId, std::vector<SubVectorId>> groups;
  for (const auto& [unit, ids] : of_unit) {
    for (const SubVectorId id : ids) {
      groups[id].assign(ids.begin(), ids.end());
    }
  }
  return groups;
}

auto Sharder::Gather(SubVectorId id, std::optional<ValueId> kept, std::vector<Op>& ops, const Op& before) -> ValueId {
  const SubVector& sub_vector = plan_.sub_vectors[id];
  const ValueId shard = kept.value_or(GatheredSlice(sub_vector));
  if (Degree(sub_vector) == 1) {
    return shard;
  }
  Emitter emitter(&plan_, &ops, PassKind::Shard);
  emitter.set_phase(before.phase);
  emitter.set_layer(before.layer);
  const Unit& unit = plan_.units[sub_vector.unit];
  emitter.set_origin(IsBackward(before) ? unit.origin : units_origin_);
  const AxisSet axes = kept ? AxisSet::Of(Axis::DpInner) : sub_vector.axes;
  const ValueId full = emitter.New({sub_vector.compute, {sub_vector.length}}, Category::Gathered,
                                   NameOf(plan_, sub_vector) + ".gathered", gathered_arena_);
  plan_.values[full].role = ValueRole::Of(id);
  emitter.Emit(op::AllGather{.shard = shard, .full = full, .axes = axes});
  return full;
}

auto Sharder::Keep(SubVectorId id, ValueId full, const Op& last_use, std::vector<Op>& ops) -> ValueId {
  const SubVector& sub_vector = plan_.sub_vectors[id];
  const std::string name = NameOf(plan_, sub_vector);
  const ValueType type{sub_vector.compute, {sub_vector.length / plan_.mesh.size(Axis::DpInner)}};
  Emitter emitter(&plan_, &ops, PassKind::Shard);
  emitter.set_phase(last_use.phase);
  emitter.set_layer(last_use.layer);
  emitter.set_origin(kept_origin_);
  RankExpr offset;
  offset.axis[static_cast<size_t>(Axis::DpInner)] = NumElements(type.shape) * SizeOf(type.dtype);
  const ValueId part = emitter.View(plan_.values[full].buffer, offset, type, name + ".part");
  const ValueId kept = emitter.New(type, Category::Gathered, name + ".kept");
  for (const ValueId value : {part, kept}) {
    SetPlacement(AxisSet::Of(Axis::DpInner), Placement::Shard(0), plan_.values[value].placement);
    plan_.values[value].role = ValueRole::Of(id);
  }
  emitter.Emit(op::Copy{.x = part, .y = kept});
  return kept;
}

auto Sharder::GatherParameters(Section& section) -> void {
  // What is gathered just now: the vector of each sub-vector, by phase half where the unit is resharded between.
  struct Gathered {
    ValueId full;
    bool in_backward = false;
    std::unordered_map<int32_t, ValueId> views;
    /// Index in `ops` of the last that has to do with it.
    size_t last_use = 0;
  };
  std::unordered_map<SubVectorId, Gathered> gathered;
  std::vector<Op> ops;
  ops.reserve(section.ops.size() + 4 * static_cast<size_t>(plan_.sub_vectors.size()));
  // Copies of what is kept until backward, by the index of the op that they go after.
  std::map<size_t, std::vector<Op>> copies;
  const std::array groups{GatherGroups(section, false), GatherGroups(section, true)};
  for (Op& op : section.ops) {
    for (const SubVectorId read : HomesReadBy(op)) {
      const bool reshard = plan_.units[plan_.sub_vectors[read].unit].reshard_after_forward;
      for (const SubVectorId id : groups[IsBackward(op) ? 1 : 0].at(read)) {
        const auto found = gathered.find(id);
        const bool again = found != gathered.end() && reshard && IsBackward(op) && !found->second.in_backward;
        if (found != gathered.end() && !again) {
          continue;
        }
        std::optional<ValueId> kept;
        if (again && plan_.mesh.size(Axis::DpInner) > 1) {
          const size_t last_use = found->second.last_use;
          kept = Keep(id, found->second.full, ops[last_use], copies[last_use]);
        }
        const ValueId full = Gather(id, kept, ops, op);
        gathered[id] = {.full = full, .in_backward = IsBackward(op), .views = {}, .last_use = ops.size() - 1};
      }
    }
    ReplaceReads(op.body, [&](ValueId& value) {
      const ParameterId parameter = plan_.values[value].role.parameter();
      if (!parameter.valid()) {
        return;
      }
      const ParameterHome& home = HomeOf(parameter);
      Gathered& unit = gathered.at(home.sub_vector);
      unit.last_use = ops.size();
      const auto [view, fresh] = unit.views.try_emplace(parameter.index);
      if (fresh) {
        Emitter emitter(&plan_, &ops, PassKind::Shard);
        const Parameter& logical = plan_.parameters[parameter];
        const DType compute = plan_.sub_vectors[home.sub_vector].compute;
        view->second = emitter.View(plan_.values[unit.full].buffer, RankExpr::Constant(home.begin * SizeOf(compute)),
                                    {compute, LocalShape(logical, plan_.mesh)}, logical.name);
        plan_.values[view->second].role = ValueRole::Of(parameter);
        plan_.values[view->second].placement = logical.placement;
      }
      value = view->second;
    });
    ops.push_back(std::move(op));
  }
  section.ops.clear();
  for (size_t i = 0; i < ops.size(); ++i) {
    section.ops.push_back(std::move(ops[i]));
    if (const auto found = copies.find(i); found != copies.end()) {
      std::ranges::move(found->second, std::back_inserter(section.ops));
    }
  }
}

auto Sharder::MakeGradients(SubVectorId id, Emitter& emitter) -> ValueId {
  const SubVector& sub_vector = plan_.sub_vectors[id];
  // Peers read it in a reduce-scatter, where there are any and it goes there as it is.
  const bool is_read = Degree(sub_vector) > 1 && reduce_types_[static_cast<size_t>(id.index)] == DType::F32;
  const ValueId full =
      emitter.New({DType::F32, {sub_vector.length}}, Category::Gradients, NameOf(plan_, sub_vector) + ".gradients",
                  is_read ? Arena::SharedTransient : Arena::Transient);
  SetPlacement(Spread(plan_.mesh, sub_vector.axes) | CopyAxes(sub_vector, plan_.mesh), Placement::Partial(),
               plan_.values[full].placement);
  plan_.values[full].role = ValueRole::Of(id);
  return full;
}

auto Sharder::MoveGradients(const std::vector<ValueId>& vectors) -> void {
  for (Value& value : plan_.values) {
    if (const ParameterId parameter = value.role.gradient_of(); parameter.valid()) {
      const ParameterHome& home = HomeOf(parameter);
      value.buffer = plan_.values[vectors[static_cast<size_t>(home.sub_vector.index)]].buffer;
      value.offset = RankExpr::Constant(home.begin * SizeOf(DType::F32));
    }
  }
}

auto Sharder::ReduceGradients(Section& section) -> void {
  std::vector<Op> none;
  Emitter tables(&plan_, &none, PassKind::Shard);
  std::vector<ValueId> vectors;
  std::unordered_map<BufferId, SubVectorId> vector_of_buffer;
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    vectors.push_back(plan_.sub_vectors[id].trainable ? MakeGradients(id, tables) : ValueId{});
    if (vectors.back().valid()) {
      vector_of_buffer[plan_.values[vectors.back()].buffer] = id;
    }
  }
  MoveGradients(vectors);

  struct Writes {
    size_t first = 0;
    size_t last = 0;
  };
  std::map<SubVectorId, Writes> writes;
  for (size_t i = 0; i < section.ops.size(); ++i) {
    for (const Access& access : AccessesOf(section.ops[i].body)) {
      const auto vector = vector_of_buffer.find(plan_.values[access.value].buffer);
      if (access.kind != AccessKind::Read && vector != vector_of_buffer.end()) {
        writes.try_emplace(vector->second, Writes{i, i}).first->second.last = i;
      }
    }
  }
  // By the index of an op: the vectors that it writes first, and those that it completes.
  std::vector<std::vector<SubVectorId>> begins(section.ops.size());
  std::vector<std::vector<SubVectorId>> completes(section.ops.size());
  for (const auto& [id, own] : writes) {
    begins[own.first].push_back(id);
    completes[own.last].push_back(id);
  }
  std::vector<Op> ops;
  ops.reserve(section.ops.size() + 4 * vectors.size());
  for (size_t i = 0; i < section.ops.size(); ++i) {
    Op& op = section.ops[i];
    Emitter emitter(&plan_, &ops, PassKind::Shard);
    emitter.set_phase(op.phase);
    emitter.set_layer(op.layer);
    emitter.set_origin(units_origin_);
    for (const SubVectorId id : begins[i]) {
      ClearPadding(id, vectors[static_cast<size_t>(id.index)], emitter);
    }
    ops.push_back(std::move(op));
    for (const SubVectorId id : completes[i]) {
      Reduce(id, vectors[static_cast<size_t>(id.index)], emitter);
    }
  }
  section.ops = std::move(ops);
}

/// Sets padding to 0 before it goes through sums like the rest: it has to hold numbers.
auto Sharder::ClearPadding(SubVectorId id, ValueId full, Emitter& emitter) -> void {
  const SubVector& sub_vector = plan_.sub_vectors[id];
  if (!IsSummed(sub_vector) || reduces_last_) {
    return;
  }
  int64_t end = 0;
  const auto clear = [&](int64_t from, int64_t to) {
    if (from < to) {
      const ValueId padding = emitter.View(plan_.values[full].buffer, RankExpr::Constant(from * SizeOf(DType::F32)),
                                           {DType::F32, {to - from}}, NameOf(plan_, sub_vector) + ".padding");
      emitter.Emit(op::Fill{.out = padding, .value = 0});
    }
  };
  for (const Segment& segment : sub_vector.segments) {
    clear(end, segment.begin);
    end = segment.end;
  }
  clear(end, sub_vector.length);
}

/// Sums the vector over the ranks that each own a slice of it.
auto Sharder::Reduce(SubVectorId id, ValueId full, Emitter& emitter) -> void {
  const int64_t degree = Degree(plan_.sub_vectors[id]);
  if ((degree == 1 && plan_.run.accumulate == 1) || reduces_last_) {
    plan_.sub_vectors[id].gradient = full;
    return;
  }
  if (degree == 1) {
    // Nobody to reduce with, only microbatches to sum: the loop says onto what.
    const ValueId slice = GradientSlice(id, emitter);
    emitter.Emit(op::Add{.a = full, .b = {}, .y = slice});
    plan_.sub_vectors[id].gradient = slice;
  } else {
    plan_.sub_vectors[id].gradient = ReduceGradient(id, full, reduce_types_[static_cast<size_t>(id.index)], emitter);
  }
}

}  // namespace

auto Shard(Plan plan, PassContext& context) -> ErrorOr<Plan> {
  ASSIGN_OR_RETURN(const auto units, ChooseUnits(plan, context));
  Sharder sharder(&plan, context, units);
  sharder.MakeState();
  sharder.GatherParameters(plan.section(SectionKind::Step));
  sharder.GatherParameters(plan.section(SectionKind::Eval));
  sharder.ReduceGradients(plan.section(SectionKind::Step));
  LoopOverMicrobatches(plan, plan.section(SectionKind::Step), sharder.reduces_last(), sharder.reduce_types());
  SumOverReplicas(plan, plan.section(SectionKind::Step));
  RemoveUnused(plan);
  return plan;
}

}  // namespace shardc
