// Placements follow from operands: what an op writes lies where the rule of its dims puts it (placement_rule.h). No op
// takes a value as cut that each rank needs whole, or one rank's term of a sum for the sum, and no collective sums or
// gathers what its ranks have whole.
#include "compiler/ops/placement_rule.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

class PlacementVerifier {
 public:
  PlacementVerifier(const Plan& plan, Findings& findings) : plan_(plan), findings_(findings) {}

  /// Asks that the slices of a sub-vector are cut over its axes, and over no other axis.
  auto Slices() -> void {
    for (const SubVector& own : plan_.sub_vectors) {
      ForEachSlice(own, [&](ValueId slice) {
        for (size_t i = 0; slice.valid() && i < NumMeshAxes; ++i) {
          const auto axis = static_cast<Axis>(i);
          const Placement expected =
              own.axes.Has(axis) && plan_.mesh.size(axis) > 1 ? Placement::Shard(0) : Placement{};
          if (PlacementOf(slice, axis) != expected) {
            findings_.Add("slice-placement"_rule, "{}, a slice of {}, is {} over {}; as a slice it is {}",
                          findings_.Name(slice), NameOf(plan_, own), TextOf(PlacementOf(slice, axis)), ToText(axis),
                          TextOf(expected));
          }
        }
      });
    }
  }

  auto Check(SectionKind section, size_t index, std::span<const Access> accesses, const PlacementRule& rule, Axis axis)
      -> void {
    const DerivedPlacements by_rule = rule.Over(axis);
    if (const PlacementRefusal& refusal = by_rule.refusal; refusal.is_set()) {
      findings_.AddOp(section, index, LabelOf(refusal.kind), "{}", refusal.text);
      return;
    }
    for (size_t i = 0; i < accesses.size(); ++i) {
      const Access& access = accesses[i];
      if (access.kind == AccessKind::Read) {
        continue;
      }
      const bool adds = access.kind == AccessKind::ReadWrite && access.kills.valid();
      if (!adds && !by_rule.results[i]) {
        continue;
      }
      const Placement declared = PlacementOf(access.value, axis);
      const Placement derived = by_rule.results[i].value_or(declared);
      if (adds && PlacementOf(access.kills, axis) != declared) {
        findings_.AddOp(section, index, "placement-differs"_rule, "{} is {} over {}, and is added to what is {}",
                        access.field, TextOf(declared), ToText(axis), TextOf(PlacementOf(access.kills, axis)));
      } else if (declared != derived) {
        findings_.AddOp(section, index, "placement-differs"_rule, "{} is {} over {}; by its operands it is {}",
                        access.field, TextOf(declared), ToText(axis), TextOf(derived));
      }
    }
  }

 private:
  auto PlacementOf(ValueId id, Axis axis) const -> Placement {
    return plan_.values[id].placement[static_cast<size_t>(axis)];
  }
  static auto LabelOf(PlacementRefusal::Kind kind) -> PlanRule {
    switch (kind) {
      case PlacementRefusal::Kind::PartialRead: return "partial-read"_rule;
      case PlacementRefusal::Kind::WholeSummed: return "whole-summed"_rule;
      case PlacementRefusal::Kind::Cut: return "dim-cut"_rule;
      case PlacementRefusal::Kind::None: break;
    }
    CHECK(false, "refusal {}", static_cast<int>(kind));
  }
  static auto TextOf(Placement placement) -> std::string {
    switch (placement.kind) {
      case PlacementKind::Replicate: return "whole";
      case PlacementKind::Shard: return fmt::format("cut along dim {}", placement.dim);
      case PlacementKind::Partial: return "a term of a sum";
    }
    CHECK(false, "placement {}", static_cast<int>(placement.kind));
  }

  const Plan& plan_;
  Findings& findings_;
};

}  // namespace

auto VerifyPlacements(const Plan& plan, Findings& findings) -> void {
  if (!plan.Established(PassKind::Place)) {
    return;
  }
  PlacementVerifier verifier(plan, findings);
  if (plan.Established(PassKind::Update)) {
    verifier.Slices();
  }
  std::vector<Axis> axes;
  for (size_t i = 0; i < NumAxes; ++i) {
    if (const auto axis = static_cast<Axis>(i); plan.mesh.size(axis) > 1) {
      axes.push_back(axis);
    }
  }
  ForEachOp(plan, [&](SectionKind section, size_t index, const Op& op) {
    const std::span<const Access> accesses = findings.AccessesOf(section, index);
    const PlacementRule rule(op.body, accesses, plan);
    for (const Axis axis : axes) {
      // After an op that is wrong, others follow from what it wrote.
      if (findings.empty()) {
        verifier.Check(section, index, accesses, rule, axis);
      }
    }
  });
}

}  // namespace shardc
