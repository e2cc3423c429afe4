// Save and restore: every vector of state is looked at before a save begins, and saved and restored once.
#include <array>
#include <vector>

#include "compiler/plan/init_rule.h"
#include "compiler/plan/loops.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

class SaveVerifier {
 public:
  SaveVerifier(const Plan& plan, Findings& findings) : plan_(plan), findings_(findings) {}

  auto Save() -> void;
  auto Restore() -> void;
  /// Asks that what checkpoints leave to the base can be read there again.
  auto Base() -> void;

 private:
  auto NameOf(SubVectorId id) const -> std::string {
    return fmt::format("sub-vector v{} of unit {}", id.index, plan_.units[plan_.sub_vectors[id].unit].name);
  }
  /// Labels for an op that covers state in a wrong place, is missing, or is there twice.
  struct CoverRules {
    PlanRule place;
    PlanRule missing;
    PlanRule twice;
  };
  /// Asks that the ops of `section` with this use of state name every (sub-vector, role) once, on its value, outside of
  /// loops.
  auto EachOnce(SectionKind section, StateUse use, const CoverRules& rules) -> void;
  /// Asks that the checks come first, that save_begin knows what they found, and that the rest is in order.
  auto SaveOrder() -> void;

  const Plan& plan_;
  Findings& findings_;
};

auto SaveVerifier::EachOnce(SectionKind section, StateUse use, const CoverRules& rules) -> void {
  std::vector<std::array<int, StateRoles.size()>> counts(static_cast<size_t>(plan_.sub_vectors.size()));
  LoopTracker loops;
  const std::vector<Op>& ops = plan_.section(section).ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    loops.Enter(ops[i]);
    if (FactsOf(ops[i]).state != use) {
      continue;
    }
    const StateTouch own = StateTouchOf(ops[i]);
    ++counts[static_cast<size_t>(own.sub_vector.index)][static_cast<size_t>(own.role)];
    const ValueId value = StateOf(plan_.sub_vectors[own.sub_vector], own.role);
    if (loops.in_loop() || !ops[i].when.always() || !value.valid() || !SameBytes(plan_, own.value, value)) {
      findings_.AddOp(section, i, rules.place, "covers, once and always, the {} of {}", ToText(own.role),
                      NameOf(own.sub_vector));
    }
  }
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    for (const StateRole role : StateRoles) {
      const int count = counts[static_cast<size_t>(id.index)][static_cast<size_t>(role)];
      const int expected = HasRole(plan_.sub_vectors[id], role) ? 1 : 0;
      if (count != expected) {
        findings_.Add(count < expected ? rules.missing : rules.twice,
                      "section {}: {} ops cover the {} of {}, expected {}", ToText(section), count, ToText(role),
                      NameOf(id), expected);
      }
    }
  }
}

auto SaveVerifier::SaveOrder() -> void {
  const std::vector<Op>& save = plan_.section(SectionKind::Save).ops;
  // The finding of the checks so far, and how far the section is.
  ValueId bad;
  enum class Stage : uint8_t { Check, Write, Done } stage = Stage::Check;
  bool in_order = true;
  for (size_t i = 0; i < save.size(); ++i) {
    const std::span<const Access> accesses = findings_.AccessesOf(SectionKind::Save, i);
    const auto found = std::ranges::find(accesses, "bad", &Access::field);
    switch (FactsOf(save[i]).state) {
      case StateUse::CheckFinite:
        if (stage != Stage::Check || found->kills != bad) {
          findings_.AddOp(SectionKind::Save, i, "save-unchecked"_rule,
                          "checks after save_begin, or forgets what was found");
        }
        bad = found->value;
        break;
      case StateUse::BeginSave:
        if (found->value != bad) {
          findings_.AddOp(SectionKind::Save, i, "save-unchecked"_rule, "begins whatever the checks found");
        }
        in_order = in_order && stage == Stage::Check && save[i].when.always();
        stage = Stage::Write;
        break;
      case StateUse::Save: in_order = in_order && stage == Stage::Write; break;
      case StateUse::CommitSave:
        in_order = in_order && stage == Stage::Write && save[i].when.always();
        stage = Stage::Done;
        break;
      case StateUse::None:
      case StateUse::Draw:
      case StateUse::Load:
      case StateUse::LoadMoment:
      case StateUse::Update:
      case StateUse::Restore:
      case StateUse::RestoreScalars: break;
    }
  }
  if (!in_order || stage != Stage::Done) {
    findings_.Add("save-order"_rule,
                  "section save has one save_begin before all save_shard ops, and one save_commit after");
  }
}

auto SaveVerifier::Save() -> void {
  EachOnce(SectionKind::Save, StateUse::CheckFinite, {"check-place"_rule, "check-missing"_rule, "check-twice"_rule});
  EachOnce(SectionKind::Save, StateUse::Save, {"save-place"_rule, "save-missing"_rule, "save-twice"_rule});
  SaveOrder();
}

auto SaveVerifier::Base() -> void {
  for (const Parameter& parameter : plan_.parameters) {
    if (parameter.in_base && !RowInBase(plan_, parameter)) {
      findings_.Add("save-base"_rule, "checkpoints leave {} to the base, and it is {}", parameter.name,
                    parameter.trainable ? "trained"
                                        : fmt::format("not there as whole rows of a type that {} holds: {}",
                                                      ToText(parameter.dtype), parameter.init));
    }
  }
}

auto SaveVerifier::Restore() -> void {
  EachOnce(SectionKind::Restore, StateUse::Restore,
           {"restore-place"_rule, "restore-missing"_rule, "restore-twice"_rule});
  const std::vector<Op>& ops = plan_.section(SectionKind::Restore).ops;
  const auto times =
      std::ranges::count_if(ops, [](const Op& op) { return FactsOf(op).state == StateUse::RestoreScalars; });
  if (times != 1) {
    findings_.Add("restore-scalars"_rule, "section restore reads the scalars {} times", times);
  }
}

}  // namespace

auto VerifySaves(const Plan& plan, Findings& findings) -> void {
  if (plan.Established(PassKind::Lifecycle)) {
    SaveVerifier verifier(plan, findings);
    verifier.Save();
    verifier.Restore();
    verifier.Base();
  }
}

}  // namespace shardc
