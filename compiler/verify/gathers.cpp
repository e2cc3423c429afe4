// Gathers of parameters: each puts together slices of one vector, over the axes that the vector is cut along. A slice
// is what a rank owns, or what a copy kept of the gathered vector: the equal interval that this rank has along
// dp_inner. Ops read parameters where they lie in the vector that was gathered last, or in the slice that is the whole,
// and as they are cut over tp.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "compiler/ops/unit_collectives.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

class GatherVerifier {
 public:
  GatherVerifier(const Plan& plan, Findings& findings)
      : plan_(plan),
        findings_(findings),
        owned_whole_(static_cast<size_t>(plan.buffers.size())),
        whole_(owned_whole_.size()),
        read_from_(static_cast<size_t>(plan.values.size())) {
    for (const SubVectorId id : plan.sub_vectors.ids()) {
      if (const ValueId slice = GatheredSlice(plan.sub_vectors[id]); slice.valid()) {
        owned_[StartOf(slice)] = {.sub_vector = id, .axes = plan.sub_vectors[id].axes, .value = slice};
        if (plan.mesh.size(plan.sub_vectors[id].axes) == 1) {
          At(owned_whole_, plan.values[slice].buffer) = id;
        }
      }
    }
  }

  auto Run(SectionKind section) -> void {
    std::ranges::fill(whole_, SubVectorId{});
    kept_.clear();
    const std::vector<Op>& ops = plan_.section(section).ops;
    // After an op that is wrong, others gather or read what it made.
    for (size_t i = 0; i < ops.size() && findings_.empty(); ++i) {
      if (const auto gather = ParameterGatherOf(plan_, ops[i])) {
        Gather(section, i, *gather);
      } else if (const auto copy = CopyOf(ops[i]); copy && IsGathered(copy->from)) {
        Keep(section, i, *copy);
      } else if (const BufferId released = ReleasedBufferOf(ops[i].body); released.valid()) {
        Forget(released);
      } else {
        Other(section, i);
      }
    }
  }

 private:
  /// First byte of a value: buffer and offset.
  using Start = std::pair<BufferId, int64_t>;
  struct Slice {
    SubVectorId sub_vector;
    AxisSet axes;
    ValueId value;
  };

  static auto At(std::vector<SubVectorId>& by_buffer, BufferId id) -> SubVectorId& {
    return by_buffer[static_cast<size_t>(id.index)];
  }
  auto StartOf(ValueId id) const -> Start { return {plan_.values[id].buffer, plan_.values[id].offset.base}; }
  auto IsGathered(ValueId id) const -> bool {
    return plan_.buffers[plan_.values[id].buffer].category == Category::Gathered;
  }
  auto NameOf(SubVectorId id) const -> std::string { return shardc::NameOf(plan_, plan_.sub_vectors[id]); }

  /// Returns the slice that has exactly these bytes; nullptr if they hold no slice.
  auto SliceAt(ValueId id) const -> const Slice* {
    const Slice* slice = nullptr;
    if (const auto owned = owned_.find(StartOf(id)); owned != owned_.end()) {
      slice = &owned->second;
    } else if (const auto kept = kept_.find(plan_.values[id].buffer); kept != kept_.end()) {
      slice = &kept->second;
    }
    return slice != nullptr && SameBytes(plan_, id, slice->value) ? slice : nullptr;
  }

  auto Gather(SectionKind section, size_t index, const Collective& gather) -> void {
    const BufferId full = plan_.values[gather.to].buffer;
    At(whole_, full) = {};
    const Slice* slice = SliceAt(gather.from);
    if (slice == nullptr) {
      findings_.AddOp(section, index, "gather-source"_rule, "gathers {}, which is no slice of a unit's parameters here",
                      plan_.values[gather.from].name);
      return;
    }
    if (Spread(plan_.mesh, gather.axes) != Spread(plan_.mesh, slice->axes)) {
      findings_.AddOp(section, index, "gather-axes"_rule, "gathers over {} what is a slice of {} over {}",
                      ToText(gather.axes), NameOf(slice->sub_vector), ToText(slice->axes));
      return;
    }
    At(whole_, full) = slice->sub_vector;
  }

  auto Keep(SectionKind section, size_t index, const Movement& copy) -> void {
    const Value& kept = plan_.values[copy.from];
    kept_.erase(plan_.values[copy.to].buffer);
    const SubVectorId whole = At(whole_, kept.buffer);
    if (!whole.valid()) {
      findings_.AddOp(section, index, "kept-slice"_rule, "keeps elements of {}, which holds no gathered vector here",
                      findings_.Name(kept.buffer));
      return;
    }
    const SubVector& sub_vector = plan_.sub_vectors[whole];
    RankExpr expected;
    expected.axis[static_cast<size_t>(Axis::DpInner)] = kept.bytes().value;
    if (kept.offset != expected || kept.num_elements() * plan_.mesh.size(Axis::DpInner) != sub_vector.length) {
      findings_.AddOp(section, index, "kept-slice"_rule,
                      "keeps {} elements at {} of {}, whose {} elements dp_inner cuts into {} slices",
                      kept.num_elements(), ToText(kept.offset), NameOf(whole), sub_vector.length,
                      plan_.mesh.size(Axis::DpInner));
      return;
    }
    kept_[plan_.values[copy.to].buffer] = {.sub_vector = whole, .axes = AxisSet::Of(Axis::DpInner), .value = copy.to};
  }

  /// Reads parameters where they are. What it writes over holds no slice, and no gathered vector, any more.
  auto Other(SectionKind section, size_t index) -> void {
    for (const Access& access : findings_.AccessesOf(section, index)) {
      const Value& value = plan_.values[access.value];
      if (access.kind == AccessKind::Read) {
        const SubVectorId whole = WholeAt(access.value);
        SubVectorId& read_from = read_from_[static_cast<size_t>(access.value.index)];
        if (read_from == whole || !whole.valid() || !findings_.Spend(plan_.sub_vectors[whole].segments.size())) {
          continue;
        }
        read_from = whole;
        if (!IsParameterOf(plan_.sub_vectors[whole], value)) {
          findings_.AddOp(section, index, "gather-view"_rule,
                          "reads {} as {}, which has another offset or another cut over tp in {}", access.field,
                          value.name, NameOf(whole));
        }
      } else if (IsGathered(access.value)) {
        Forget(value.buffer);
      }
    }
  }

  /// Returns the vector that is whole where the value is: a gathered one, or the own slice of a rank that shares with
  /// no other rank, unless the value is that slice. Returns an invalid id if there is no such vector.
  auto WholeAt(ValueId id) -> SubVectorId {
    const BufferId buffer = plan_.values[id].buffer;
    if (const SubVectorId whole = At(whole_, buffer); whole.valid() && IsGathered(id)) {
      return whole;
    }
    const SubVectorId owned = At(owned_whole_, buffer);
    const bool is_slice = owned.valid() && GatheredSlice(plan_.sub_vectors[owned]) == id;
    return is_slice ? SubVectorId{} : owned;
  }

  /// Marks the buffer as one that holds no gathered or kept vector.
  auto Forget(BufferId id) -> void {
    At(whole_, id) = {};
    kept_.erase(id);
  }

  /// Returns true if the value is one of the vector's parameters, at its offset.
  auto IsParameterOf(const SubVector& sub_vector, const Value& value) const -> bool {
    return std::ranges::any_of(sub_vector.segments, [&](const Segment& segment) {
      const Parameter& parameter = plan_.parameters[segment.parameter];
      return value.offset == RankExpr::Constant(segment.begin * SizeOf(value.dtype)) &&
             value.num_elements() == segment.end - segment.begin && value.role == ValueRole::Of(segment.parameter) &&
             AreAlikeOver(AxesSharing(Shared::Matrices), value.placement, parameter.placement);
    });
  }

  const Plan& plan_;
  Findings& findings_;
  /// By where they begin: the slices that ranks own.
  std::map<Start, Slice> owned_;
  /// By buffer: the vector that each rank has whole there.
  std::vector<SubVectorId> owned_whole_;
  /// By buffer: the vector that it holds where the walk is, and the slice that a copy kept.
  std::vector<SubVectorId> whole_;
  std::unordered_map<BufferId, Slice> kept_;
  /// For each value, the vector that it was last read from, so that each is looked up once.
  std::vector<SubVectorId> read_from_;
};

}  // namespace

auto VerifyGathers(const Plan& plan, Findings& findings) -> void {
  if (!plan.Established(PassKind::Shard)) {
    return;
  }
  GatherVerifier verifier(plan, findings);
  for (int section = 0; section < NumSections; ++section) {
    verifier.Run(static_cast<SectionKind>(section));
  }
}

}  // namespace shardc
