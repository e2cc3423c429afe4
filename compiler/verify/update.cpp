// The update as a whole: every update runs where control, on which all ranks agreed before, found all gradients finite,
// and nowhere else, with the settings of the others; and the norm that clips is the one that is told, of all
// parameters. What the norm and control are made of is the matter of backward.cpp.
#include <concepts>

#include "compiler/plan/loops.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

struct SettingsText : IgnoreFields {
  explicit SettingsText(const Plan& the_plan) : plan(the_plan) {}
  const Plan& plan;
  std::string text;
  template <class T>
  auto Attr(std::string_view name, const T& value) -> void {
    if constexpr (std::is_arithmetic_v<T>) {
      text += fmt::format(" {}={}", name, value);
    } else if constexpr (std::same_as<T, ScalarId>) {
      text += fmt::format(" {}={}", name, plan.scalars[value].name);
    }
  }
};

class UpdateVerifier {
 public:
  UpdateVerifier(const Plan& plan, Findings& findings)
      : plan_(plan), findings_(findings), ops_(plan.section(SectionKind::Step).ops) {}

  auto Run() -> void {
    LoopTracker loops;
    for (size_t i = 0; i < ops_.size(); ++i) {
      loops.Enter(ops_[i]);
      const OpFacts& facts = FactsOf(ops_[i]);
      if (facts.collective == CollectiveKind::Agree) {
        Agreement(i, loops.in_loop());
      } else if (facts.update == UpdatePart::Clip) {
        norm_ = ValueIn(ops_[i].body, "norm");
      } else if (facts.update == UpdatePart::Apply) {
        Update(i);
      }
      for (const ScalarUse& use : ScalarsOf(ops_[i])) {
        loss_is_told_ = loss_is_told_ ||
                        (use.effect == ScalarEffect::SetByRank && plan_.scalars[use.scalar].role == ScalarRole::Loss);
        if (use.effect == ScalarEffect::SetByRank && plan_.scalars[use.scalar].role == ScalarRole::GradNorm &&
            ValueIn(ops_[i].body, "value") != norm_) {
          Report(i, "norm-told"_rule, "reads as grad_norm what is not the norm that clips");
        }
      }
    }
  }

 private:
  template <class... Args>
  auto Report(size_t index, PlanRule rule, fmt::format_string<Args...> format, Args&&... args) -> void {
    findings_.AddOp(SectionKind::Step, index, rule, format, std::forward<Args>(args)...);
  }

  auto Agreement(size_t i, bool in_loop) -> void {
    const AxisSet axes = *AttributeOf<AxisSet>(ops_[i].body, "axes");
    if (in_loop || agreement_ != nullptr || Spread(plan_.mesh, axes) != Spread(plan_.mesh, AxisSet::All())) {
      Report(i, "control-once"_rule, "the ranks agree over {}; all of them do, once per step", ToText(axes));
    }
    agreement_ = &ops_[i];
    // Before that its number is the last step's.
    if (const ScalarId judged = *AttributeOf<ScalarId>(ops_[i].body, "loss"); judged.valid() && !loss_is_told_) {
      Report(i, "spike-loss"_rule, "judges {} before the step has told it", plan_.scalars[judged].name);
    }
  }

  /// Returns the flag that is 1 if no update may be made.
  auto LeftOutFlag() const -> ScalarId {
    if (agreement_ == nullptr) {
      return {};
    }
    const ScalarId left_out = *AttributeOf<ScalarId>(agreement_->body, "left_out");
    return left_out.valid() ? left_out : *AttributeOf<ScalarId>(agreement_->body, "nonfinite");
  }

  auto Update(size_t i) -> void {
    const Predicate finite{.scalar = LeftOutFlag(), .negated = true};
    if (agreement_ == nullptr || ops_[i].when != finite) {
      Report(i, "update-guard"_rule, "runs {}; an update is made where control, before it, found all gradients finite",
             ops_[i].when.always() ? "always" : "under another predicate");
    }
    const SubVectorId sub_vector = StateTouchOf(ops_[i]).sub_vector;
    const std::string settings = SettingsOf(ops_[i]);
    if (!first_.valid()) {
      first_ = sub_vector;
      first_settings_ = settings;
    }
    if (settings != first_settings_) {
      Report(i, "update-settings"_rule, "updates with{}; {} is updated with{}", settings,
             NameOf(plan_, plan_.sub_vectors[first_]), first_settings_);
    }
    for (const Segment& segment : plan_.sub_vectors[sub_vector].segments) {
      if (!segment.counted_in_norm) {
        Report(i, "norm-counted"_rule, "updates {}, which is left out of the norm",
               plan_.parameters[segment.parameter].name);
      }
    }
  }

  /// Returns the settings that all updates of a step share, as text: every attribute but the sub-vector, " lr=lr
  /// beta1=0.9".
  auto SettingsOf(const Op& op) const -> std::string {
    SettingsText text(plan_);
    VisitBody(op.body, [&](const auto& body) { VisitFields(body, text); });
    return text.text;
  }

  const Plan& plan_;
  Findings& findings_;
  const std::vector<Op>& ops_;
  /// The op in which the ranks agree.
  const Op* agreement_ = nullptr;
  bool loss_is_told_ = false;
  /// The sub-vector that is updated first, and the settings of that update.
  SubVectorId first_;
  std::string first_settings_;
  ValueId norm_;
};

}  // namespace

auto VerifyUpdate(const Plan& plan, Findings& findings) -> void {
  if (plan.Established(PassKind::Update)) {
    UpdateVerifier(plan, findings).Run();
  }
}

}  // namespace shardc
