// The update as a whole: every adamw runs where control, on which all ranks agreed before, found all gradients finite,
// and nowhere else, with the settings of the others; and the norm that clips is the one that is told, of all
// parameters. What the norm and control are made of is the matter of verify_backward.cpp.
#include "compiler/ops/verify_internal.h"

namespace shardc {

namespace {

class UpdateVerifier {
 public:
  UpdateVerifier(const Plan& plan, Findings& findings)
      : plan_(plan), findings_(findings), ops_(plan.section(SectionKind::Step).ops) {}

  auto Run() -> void {
    int depth = 0;
    for (size_t i = 0; i < ops_.size(); ++i) {
      depth += ops_[i].As<op::Repeat>() != nullptr ? 1 : 0;
      depth -= ops_[i].As<op::EndRepeat>() != nullptr ? 1 : 0;
      if (const auto* control = ops_[i].As<op::Control>()) {
        Control(i, *control, depth > 0);
      } else if (const auto* clip = ops_[i].As<op::ClipFactor>()) {
        norm_ = clip->norm;
      } else if (const auto* adamw = ops_[i].As<op::Adamw>()) {
        Update(i, *adamw);
      } else if (const auto* read = ops_[i].As<op::ReadScalar>();
                 read != nullptr && plan_.scalars[read->to].name == "grad_norm" && read->value != norm_) {
        Report(i, "norm-told"_rule, "reads as grad_norm what is not the norm that clip_factor makes");
      }
    }
  }

 private:
  template <class... Args>
  auto Report(size_t index, PlanRule rule, fmt::format_string<Args...> format, Args&&... args) -> void {
    findings_.AddOp(SectionKind::Step, index, rule, format, std::forward<Args>(args)...);
  }

  auto Control(size_t i, const op::Control& control, bool in_loop) -> void {
    if (in_loop || control_ != nullptr || Spread(plan_.mesh, control.axes) != Spread(plan_.mesh, AxisSet::All())) {
      Report(i, "control-once"_rule, "the ranks agree over {}; all of them do, once a step", ToText(control.axes));
    }
    control_ = &control;
  }

  auto Update(size_t i, const op::Adamw& adamw) -> void {
    const Predicate finite{.scalar = control_ == nullptr ? ScalarId{} : control_->nonfinite, .negated = true};
    if (control_ == nullptr || ops_[i].when != finite) {
      Report(i, "update-guard"_rule, "runs {}; an update is made where control, before it, found all gradients finite",
             ops_[i].when.always() ? "always" : "under another predicate");
    }
    first_ = first_ == nullptr ? &adamw : first_;
    if (adamw.beta1 != first_->beta1 || adamw.beta2 != first_->beta2 || adamw.eps != first_->eps ||
        adamw.lr != first_->lr || adamw.updates != first_->updates) {
      Report(i, "update-settings"_rule, "beta1, beta2 and eps are {}, {} and {}, lr is {}; of {} {}, {}, {} and {}",
             adamw.beta1, adamw.beta2, adamw.eps, plan_.scalars[adamw.lr].name,
             NameOf(plan_, plan_.sub_vectors[first_->sub_vector]), first_->beta1, first_->beta2, first_->eps,
             plan_.scalars[first_->lr].name);
    }
    for (const Segment& segment : plan_.sub_vectors[adamw.sub_vector].segments) {
      if (!segment.counted_in_norm) {
        Report(i, "norm-counted"_rule, "updates {}, which is left out of the norm",
               plan_.parameters[segment.parameter].name);
      }
    }
  }

  const Plan& plan_;
  Findings& findings_;
  const std::vector<Op>& ops_;
  const op::Control* control_ = nullptr;
  const op::Adamw* first_ = nullptr;
  ValueId norm_;
};

}  // namespace

auto VerifyUpdate(const Plan& plan, Findings& findings) -> void {
  if (plan.Established(PassKind::Update)) {
    UpdateVerifier(plan, findings).Run();
  }
}

}  // namespace shardc
