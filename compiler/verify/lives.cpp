// Lives of bytes: what an op reads was written and not overwritten or released since; what it writes plainly held
// nothing; what a section makes it releases; buffers that live at one time do not share bytes.
//
// The sections are run in the order in which state comes about, each from the state that those before it left:
// constants, then init and restore, then data, then step, eval and save. They are followed on the first rank and, if
// offsets differ by rank, on the last. That stands for all ranks: offsets.cpp shows that two values share bytes
// on all ranks or on none; slices that differ by rank are made as wholes; and of a parameter that tp cuts unequally the
// first rank has most.
#include <algorithm>

#include "compiler/verify/section_run.h"

namespace shardc {

namespace {

/// Returns the bytes that both states hold.
auto Common(const HeldState& a, const HeldState& b) -> HeldState {
  HeldState common;
  const auto is_before = [](const HeldBytes& x, const HeldBytes& y) {
    return x.buffer < y.buffer || (x.buffer == y.buffer && x.bytes.end <= y.bytes.begin);
  };
  auto other = b.begin();
  for (const HeldBytes& held : a) {
    while (other != b.end() && is_before(*other, held)) {
      ++other;
    }
    for (auto meets = other; meets != b.end() && !is_before(held, *meets); ++meets) {
      common.push_back({held.buffer, Intersect(held.bytes, meets->bytes)});
    }
  }
  return common;
}

auto CollectUses(const Plan& plan, Findings& findings) -> PlanUses {
  PlanUses uses;
  uses.buffers.resize(static_cast<size_t>(plan.buffers.size()));
  uses.values.resize(static_cast<size_t>(plan.values.size()));
  uses.unit_of_parameter.resize(static_cast<size_t>(plan.parameters.size()));
  for (const SubVector& sub_vector : plan.sub_vectors) {
    for (const Segment& segment : sub_vector.segments) {
      uses.unit_of_parameter[static_cast<size_t>(segment.parameter.index)] = sub_vector.unit;
    }
  }
  ForEachOp(plan, [&](SectionKind section, size_t index, const Op& op) {
    for (const Access& access : findings.AccessesOf(section, index)) {
      ValueUse& use = uses.Of(access.value);
      use.is_named = true;
      if (access.kills.valid()) {
        uses.Of(access.kills).is_named = true;
      }
      if (access.kind == AccessKind::Write || access.kills.valid()) {
        use.result_in.Add(section);
        use.is_carried = use.is_carried || FactsOf(op).meaning == Meaning::Renamed;
        if (!access.kills.valid()) {
          uses.Of(plan.values[access.value].buffer).written_in.Add(section);
        }
      }
    }
    if (const BufferId released = ReleasedBufferOf(op.body); released.valid()) {
      uses.Of(released).released_in.Add(section);
    }
  });
  for (const ValueId id : plan.values.ids()) {
    if (uses.Of(id).is_named && uses.Of(id).result_in.empty()) {
      uses.Of(plan.values[id].buffer).is_viewed = true;
    }
  }
  return uses;
}

class LivesVerifier {
 public:
  LivesVerifier(const Plan& plan, Findings& findings)
      : plan_(plan), findings_(findings), uses_(CollectUses(plan, findings)), states_(plan) {}

  auto OnRank(const Coordinates& coordinates) -> void {
    coordinates_ = coordinates;
    const HeldState constants = Follow(SectionKind::Constants, {});
    const HeldState fresh = Follow(SectionKind::Init, constants);
    const HeldState restored = Follow(SectionKind::Restore, constants);
    const bool restores = !plan_.section(SectionKind::Restore).ops.empty();
    const HeldState ready = restores ? Common(fresh, restored) : fresh;
    const HeldState loaded = Follow(SectionKind::Data, ready);
    // Nothing follows from what these leave.
    Run(SectionKind::Step, loaded);
    Run(SectionKind::Eval, ready);
    Run(SectionKind::Save, ready);
  }

 private:
  auto Run(SectionKind section, const HeldState& before) -> SectionRun {
    SectionRun run(plan_, uses_, section, coordinates_, states_, findings_);
    if (!plan_.section(section).ops.empty() && findings_.empty()) {
      run.Start(before);
      WalkSection(plan_.section(section).ops, run);
      run.Finish();
    }
    return run;
  }
  /// Returns the bytes that are held after a section that found `before`.
  auto Follow(SectionKind section, const HeldState& before) -> HeldState {
    const bool runs = !plan_.section(section).ops.empty() && findings_.empty();
    return runs ? Run(section, before).Held() : before;
  }

  const Plan& plan_;
  Findings& findings_;
  PlanUses uses_;
  RunStates states_;
  Coordinates coordinates_{};
};

}  // namespace

auto VerifyLives(const Plan& plan, Findings& findings) -> void {
  LivesVerifier verifier(plan, findings);
  verifier.OnRank(plan.mesh.CoordinatesOf(0));
  const bool differs = std::any_of(plan.values.begin(), plan.values.end(), [](const Value& value) {
    return std::any_of(value.offset.axis.begin(), value.offset.axis.end(), [](int64_t factor) { return factor != 0; });
  });
  if (differs && findings.empty()) {
    verifier.OnRank(plan.mesh.CoordinatesOf(plan.mesh.num_ranks() - 1));
  }
}

}  // namespace shardc
