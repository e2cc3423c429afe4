// State: what a parameter is promised over a run. Segments tile their vectors; every parameter lies in one of them, is
// initialised by one op (drawn or loaded, as its rule says), and if it is trainable its gradient is reduced and it is
// updated once per step; every vector of state is cleared once.
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/plan/init_rule.h"
#include "compiler/plan/local_parameter.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

class StateVerifier {
 public:
  StateVerifier(const Plan& plan, Findings& findings) : plan_(plan), findings_(findings) {}

  auto Segments() -> void;
  auto Init() -> void;
  auto Step() -> void;
  /// Asks that each copy in the compute type is made once in `section`, after the last write of what it copies.
  auto Copies(SectionKind section) -> void;

 private:
  auto NameOf(SubVectorId id) const -> std::string {
    return fmt::format("sub-vector v{} of unit {}", id.index, plan_.units[plan_.sub_vectors[id].unit].name);
  }
  auto SegmentsOf(SubVectorId id, std::vector<int>& homes) -> void;
  auto SliceValues(SubVectorId id) -> void;
  /// Asks that an op of the update reads and writes the slices of its sub-vector, and its copy.
  auto UpdatedState(size_t index, const Op& op) -> void;
  /// Calls `function(index, op, in_loop)` for the ops of a section.
  template <class Function>
  auto ForOps(SectionKind section, Function&& function) -> void {
    LoopTracker loops;
    const std::vector<Op>& ops = plan_.section(section).ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      loops.Enter(ops[i]);
      function(i, ops[i], loops.in_loop());
    }
  }
  /// Returns which of these all_reduces of the step is the only one that touches a gradient's slice, if it comes after
  /// op `reduced`, outside of loops, over these axes and all of the slice. Returns nothing if there is no such op, or
  /// more than one.
  auto SummedOnce(const std::vector<std::pair<size_t, bool>>& all_reduces, size_t reduced, AxisSet axes,
                  const Value& gradient) const -> std::optional<size_t> {
    const int64_t begin = gradient.offset.base;
    const int64_t end = begin + gradient.bytes().value;
    std::optional<size_t> found;
    for (const auto& [index, in_loop] : all_reduces) {
      const Collective op = *CollectiveOf(plan_.section(SectionKind::Step).ops[index]);
      const Value& sum = plan_.values[op.to];
      const int64_t sum_end = sum.offset.base + sum.bytes().value;
      if (sum.offset.base >= end || sum_end <= begin) {
        continue;
      }
      if (found || in_loop || index < reduced || op.axes != axes || sum.offset.base > begin || sum_end < end) {
        return std::nullopt;
      }
      found = index;
    }
    return found;
  }

  const Plan& plan_;
  Findings& findings_;
};

auto StateVerifier::SegmentsOf(SubVectorId id, std::vector<int>& homes) -> void {
  const SubVector& sub_vector = plan_.sub_vectors[id];
  const int64_t degree = plan_.mesh.size(sub_vector.axes);
  if (sub_vector.length % (degree * SubVectorAlignment) != 0) {
    findings_.Add("sub-vector-length"_rule, "{} has {} elements, no multiple of {} ranks times {}", NameOf(id),
                  sub_vector.length, degree, SubVectorAlignment);
  }
  int64_t reached = 0;
  for (const Segment& segment : sub_vector.segments) {
    const Parameter& parameter = plan_.parameters[segment.parameter];
    ++homes[static_cast<size_t>(segment.parameter.index)];
    if (segment.begin < reached || segment.end <= segment.begin || segment.end > sub_vector.length) {
      findings_.Add("segment-range"_rule, "{} at {} to {} of {}: the segment before ends at {}, the vector at {}",
                    parameter.name, segment.begin, segment.end, NameOf(id), reached, sub_vector.length);
    } else {
      reached = segment.end;
    }
    if (segment.begin % SubVectorAlignment != 0) {
      findings_.Add("segment-alignment"_rule, "{} begins at element {}, no multiple of {}", parameter.name,
                    segment.begin, SubVectorAlignment);
    }
    const int64_t elements = NumElements(LocalShape(parameter, plan_.mesh));
    if (segment.end - segment.begin != elements) {
      findings_.Add("segment-size"_rule, "{} has {} elements on a rank, its segment {}", parameter.name, elements,
                    segment.end - segment.begin);
    }
    if (const AxisSet cut = CutAxes(parameter, plan_.mesh); cut != sub_vector.cut) {
      findings_.Add("tp-mismatch"_rule, "{} is cut over {}, {} over {}", parameter.name, ToText(cut), NameOf(id),
                    ToText(sub_vector.cut));
    }
    if (parameter.dtype != StateTypeOf(plan_, sub_vector, StateRole::Parameter) ||
        (parameter.dtype != DType::F32 && parameter.dtype != DType::BF16)) {
      findings_.Add("parameter-type"_rule, "{} is kept in {}, the first of {} in {}", parameter.name,
                    ToText(parameter.dtype), NameOf(id), ToText(StateTypeOf(plan_, sub_vector, StateRole::Parameter)));
    }
    if (parameter.trainable != sub_vector.trainable) {
      findings_.Add("trainable-mismatch"_rule, "{} is {}, {} is not", parameter.name,
                    parameter.trainable ? "trainable" : "frozen", NameOf(id));
    }
  }
}

auto StateVerifier::SliceValues(SubVectorId id) -> void {
  const SubVector& sub_vector = plan_.sub_vectors[id];
  const DType master = StateTypeOf(plan_, sub_vector, StateRole::Parameter);
  if ((sub_vector.compute != master) != sub_vector.compute_copy.valid()) {
    findings_.Add("copy-unset"_rule, "{} is kept in {}, computes in {} and has {} copy in it", NameOf(id),
                  ToText(master), ToText(sub_vector.compute), sub_vector.compute_copy.valid() ? "a" : "no");
  }
  const int64_t slice = sub_vector.length / plan_.mesh.size(sub_vector.axes);
  for (const StateRole role : StateRoles) {
    const ValueId value = StateOf(sub_vector, role);
    const bool is_needed =
        role == StateRole::Parameter || (sub_vector.trainable && KeepsAlways(plan_.run.optimizer, role));
    if (!is_needed && value.valid() && !(sub_vector.trainable && MayKeep(plan_.run.optimizer, role))) {
      findings_.Add("state-foreign"_rule, "{} has the vector {}, which {} does not keep of what is {}", NameOf(id),
                    ToText(role), ToText(plan_.run.optimizer), sub_vector.trainable ? "trained" : "frozen");
      continue;
    }
    if (!is_needed && !value.valid()) {
      continue;
    }
    if (!value.valid()) {
      findings_.Add("state-unset"_rule, "{} has no {}", NameOf(id), ToText(role));
    } else if (plan_.values[value].num_elements() != slice ||
               !IsPersistent(plan_.buffers[plan_.values[value].buffer].arena)) {
      findings_.Add("state-slice"_rule, "the {} of {} has {} elements in the {} arena, expected {} in a persistent one",
                    ToText(role), NameOf(id), plan_.values[value].num_elements(),
                    ToText(plan_.buffers[plan_.values[value].buffer].arena), slice);
    } else {
      const Category expected = role == StateRole::Parameter ? Category::Parameters : Category::Moments;
      if (const Category found = plan_.buffers[plan_.values[value].buffer].category; found != expected) {
        findings_.Add("state-category"_rule, "the {} of {} is counted as {}, expected {}", ToText(role), NameOf(id),
                      ToText(found), ToText(expected));
      }
    }
  }
}

auto StateVerifier::Segments() -> void {
  std::vector<int> homes(static_cast<size_t>(plan_.parameters.size()), 0);
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    SegmentsOf(id, homes);
  }
  for (const ParameterId id : plan_.parameters.ids()) {
    if (homes[static_cast<size_t>(id.index)] != 1) {
      findings_.Add("parameter-home"_rule, "{} lies in {} segments, expected 1", plan_.parameters[id].name,
                    homes[static_cast<size_t>(id.index)]);
    }
  }
  // Slices are of vectors that are sound.
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    if (findings_.empty()) {
      SliceValues(id);
    }
  }
}

auto StateVerifier::Init() -> void {
  std::vector<int> inits(static_cast<size_t>(plan_.parameters.size()), 0);
  std::map<std::pair<ParameterId, StateRole>, int> moments;
  ForOps(SectionKind::Init, [&](size_t i, const Op& op, bool in_loop) {
    const StateUse use = FactsOf(op).state;
    if (use != StateUse::Draw && use != StateUse::Load && use != StateUse::LoadMoment) {
      return;
    }
    const StateTouch own = StateTouchOf(op);
    const ParameterId id = *AttributeOf<ParameterId>(op.body, "parameter");
    ++(use == StateUse::LoadMoment ? moments[{id, own.role}] : inits[static_cast<size_t>(id.index)]);
    const ValueId shard = StateOf(plan_.sub_vectors[own.sub_vector], own.role);
    if (in_loop || !op.when.always() || !shard.valid() || !SameBytes(plan_, own.value, shard)) {
      findings_.AddOp(SectionKind::Init, i, "init-place"_rule,
                      "initialises once, always, and in the slice of its sub-vector");
    }
    if (const Parameter& parameter = plan_.parameters[id]; use == StateUse::Draw && LoadedTensorOf(parameter)) {
      findings_.AddOp(SectionKind::Init, i, "init-loaded"_rule, "generates {}, which is loaded: {}", parameter.name,
                      parameter.init);
    }
  });
  for (const ParameterId id : plan_.parameters.ids()) {
    const int count = inits[static_cast<size_t>(id.index)];
    if (count != 1) {
      findings_.Add(count == 0 ? "init-missing"_rule : "init-twice"_rule, "{} is initialised {} times",
                    plan_.parameters[id].name, count);
    }
  }
  for (const SubVector& sub_vector : plan_.sub_vectors) {
    for (const StateRole role : OptimizerRoles) {
      for (const Segment& segment : sub_vector.segments) {
        const Parameter& parameter = plan_.parameters[segment.parameter];
        const int expected = HasRole(sub_vector, role) && TakesMoments(plan_, parameter) ? 1 : 0;
        const auto loads = moments.find({segment.parameter, role});
        if (const int count = loads == moments.end() ? 0 : loads->second; count != expected) {
          findings_.Add("moment-load"_rule, "the {} of {} is loaded {} times, expected {}", ToText(role),
                        parameter.name, count, expected);
        }
      }
    }
  }
  // State begins as zeros, so that padding and moments do.
  std::map<std::pair<BufferId, int64_t>, int> fills;
  ForOps(SectionKind::Init, [&](size_t i, const Op& op, bool) {
    if (ConstantOf(op) == 0) {
      const Value& cleared = plan_.values[findings_.AccessesOf(SectionKind::Init, i).front().value];
      ++fills[{cleared.buffer, cleared.offset.base}];
    }
  });
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    for (const StateRole role : StateRoles) {
      const ValueId value = StateOf(plan_.sub_vectors[id], role);
      if (!HasRole(plan_.sub_vectors[id], role) || !value.valid()) {
        continue;
      }
      if (const int count = fills[{plan_.values[value].buffer, plan_.values[value].offset.base}]; count != 1) {
        findings_.Add("state-clear"_rule, "the {} of {} is set to 0 {} times", ToText(role), NameOf(id), count);
      }
    }
  }
}

auto StateVerifier::UpdatedState(size_t index, const Op& op) -> void {
  const SubVectorId id = StateTouchOf(op).sub_vector;
  const SubVector& sub_vector = plan_.sub_vectors[id];
  const auto expect = [&](std::string_view field, ValueId of, bool may_be_unset = false) {
    const ValueId own = ValueIn(op.body, field);
    if (may_be_unset && !own.valid() && !of.valid()) {
      return;
    }
    if (!own.valid() || !of.valid() || !SameBytes(plan_, own, of)) {
      findings_.AddOp(SectionKind::Step, index, "update-place"_rule, "{} is not what {} has",
                      own.valid() ? findings_.Name(own) : std::string(field), NameOf(id));
    }
  };
  expect("gradient", sub_vector.gradient);
  for (const StateRole role : StateRoles) {
    expect(ToText(role), StateOf(sub_vector, role),
           role != StateRole::Parameter && !KeepsAlways(plan_.run.optimizer, role));
  }
  const ValueId copy = ValueIn(op.body, "copy");
  if (copy.valid() != sub_vector.compute_copy.valid() ||
      (copy.valid() && !SameBytes(plan_, copy, sub_vector.compute_copy))) {
    findings_.AddOp(SectionKind::Step, index, "update-copy"_rule,
                    "does not write the copy in {} that {} is gathered from", ToText(sub_vector.compute), NameOf(id));
  }
}

auto StateVerifier::Step() -> void {
  // By the bytes of the gradient: where it was last reduced, and by which op it is used.
  std::map<std::pair<BufferId, int64_t>, size_t> reduced;
  // On each buffer: the all_reduces, and whether a loop has them; and the last write of any op.
  std::unordered_map<BufferId, std::vector<std::pair<size_t, bool>>> all_reduced;
  std::vector<std::optional<size_t>> written(static_cast<size_t>(plan_.buffers.size()));
  std::vector<int> updates(static_cast<size_t>(plan_.sub_vectors.size()), 0);
  std::vector<size_t> updated_at(updates.size(), 0);
  ForOps(SectionKind::Step, [&](size_t i, const Op& op, bool in_loop) {
    for (const Access& access : findings_.AccessesOf(SectionKind::Step, i)) {
      if (access.kind != AccessKind::Read) {
        written[static_cast<size_t>(plan_.values[access.value].buffer.index)] = i;
      }
    }
    const CollectiveKind collective = FactsOf(op).collective;
    if (collective == CollectiveKind::ReduceScatter) {
      const Value& shard = plan_.values[CollectiveOf(op)->to];
      reduced[{shard.buffer, shard.offset.base}] = i;
    } else if (collective == CollectiveKind::AllReduce) {
      all_reduced[plan_.values[CollectiveOf(op)->to].buffer].emplace_back(i, in_loop);
    }
    if (FactsOf(op).update != UpdatePart::Apply) {
      return;
    }
    const SubVectorId id = StateTouchOf(op).sub_vector;
    const auto index = static_cast<size_t>(id.index);
    ++updates[index];
    updated_at[index] = i;
    if (in_loop) {
      findings_.AddOp(SectionKind::Step, i, "update-twice"_rule, "updates in every pass of a loop");
    }
    UpdatedState(i, op);
  });
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    const SubVector& sub_vector = plan_.sub_vectors[id];
    const auto index = static_cast<size_t>(id.index);
    if (!sub_vector.trainable) {
      if (updates[index] != 0) {
        findings_.Add("update-frozen"_rule, "{} is frozen and updated", NameOf(id));
      }
      continue;
    }
    if (updates[index] != 1) {
      findings_.Add(updates[index] == 0 ? "update-missing"_rule : "update-twice"_rule,
                    "{} is updated {} times per step", NameOf(id), updates[index]);
    }
    std::optional<size_t> complete;
    if (sub_vector.gradient.valid()) {
      const Value& gradient = plan_.values[sub_vector.gradient];
      if (plan_.mesh.size(sub_vector.axes) > 1) {
        const auto found = reduced.find({gradient.buffer, gradient.offset.base});
        const auto scatter =
            found == reduced.end() ? std::nullopt : CollectiveOf(plan_.section(SectionKind::Step).ops[found->second]);
        if (scatter && scatter->axes == sub_vector.axes && SameBytes(plan_, scatter->to, sub_vector.gradient)) {
          complete = found->second;
        }
      } else {
        complete = written[static_cast<size_t>(gradient.buffer.index)];
      }
      if (const AxisSet axes = CopyAxes(sub_vector, plan_.mesh); complete && axes != AxisSet{}) {
        complete = SummedOnce(all_reduced[gradient.buffer], *complete, axes, gradient);
      }
    }
    if (!complete) {
      findings_.Add(
          "unreduced-parameter"_rule, "the gradient of {} ({}) is not reduced over {}", NameOf(id),
          sub_vector.segments.empty() ? "no parameter" : plan_.parameters[sub_vector.segments[0].parameter].name,
          ToText(sub_vector.axes | CopyAxes(sub_vector, plan_.mesh)));
    } else if (updates[index] == 1 && *complete > updated_at[index]) {
      findings_.AddOp(SectionKind::Step, *complete, "update-early"_rule,
                      "adds to the gradient of {} after op {} has used it", NameOf(id), updated_at[index]);
    }
  }
}

auto StateVerifier::Copies(SectionKind section) -> void {
  struct Copy {
    int made = 0;
    bool stale = true;
  };
  std::vector<Copy> copies(static_cast<size_t>(plan_.sub_vectors.size()));
  // The sub-vectors by the buffers of their copies, and of the slices that these are made of.
  using ByBuffer = std::unordered_map<BufferId, std::vector<SubVectorId>>;
  ByBuffer by_copy;
  ByBuffer by_shard;
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    const SubVector& sub_vector = plan_.sub_vectors[id];
    if (sub_vector.compute_copy.valid() && sub_vector.shard.valid()) {
      by_copy[plan_.values[sub_vector.compute_copy].buffer].push_back(id);
      by_shard[plan_.values[sub_vector.shard].buffer].push_back(id);
    }
  }
  const auto for_each_at = [&](const ByBuffer& by_buffer, ValueId value, auto&& function) {
    if (const auto found = by_buffer.find(plan_.values[value].buffer); found != by_buffer.end()) {
      for (const SubVectorId id : found->second) {
        function(plan_.sub_vectors[id], copies[static_cast<size_t>(id.index)]);
      }
    }
  };
  ForOps(section, [&](size_t i, const Op& op, bool in_loop) {
    for (const Access& access : findings_.AccessesOf(section, i)) {
      if (access.kind != AccessKind::Read) {
        for_each_at(by_shard, access.value, [&](const SubVector&, Copy& copy) { copy.stale = true; });
      }
    }
    if (const auto cast = CastOf(op)) {
      for_each_at(by_copy, cast->to, [&](const SubVector& sub_vector, Copy& copy) {
        if (SameBytes(plan_, cast->to, sub_vector.compute_copy)) {
          ++copy.made;
          copy.stale = in_loop || !op.when.always() || !SameBytes(plan_, cast->from, sub_vector.shard);
        }
      });
    }
  });
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    const SubVector& sub_vector = plan_.sub_vectors[id];
    const Copy& copy = copies[static_cast<size_t>(id.index)];
    if (sub_vector.compute_copy.valid() && sub_vector.shard.valid() && (copy.made != 1 || copy.stale)) {
      findings_.Add("copy-stale"_rule, "section {} makes the {} copy of {} {} times{}", ToText(section),
                    ToText(sub_vector.compute), NameOf(id), copy.made, copy.stale ? ", not of what it leaves" : "");
    }
  }
}

}  // namespace

auto VerifySegments(const Plan& plan, Findings& findings) -> void {
  if (plan.Established(PassKind::Shard)) {
    StateVerifier(plan, findings).Segments();
  }
}

auto VerifyState(const Plan& plan, Findings& findings) -> void {
  if (plan.Established(PassKind::Lifecycle)) {
    StateVerifier verifier(plan, findings);
    verifier.Init();
    verifier.Step();
    verifier.Copies(SectionKind::Init);
    verifier.Copies(SectionKind::Restore);
  }
}

}  // namespace shardc
