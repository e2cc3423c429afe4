// Scalars that the runner and its messages look up by name: each is there, of its kind, and what it is named for.
#include <array>

#include "compiler/ops/verify_internal.h"

namespace shardc {

namespace {

struct NamedScalar {
  std::string_view name;
  ScalarKind kind;
};

constexpr std::array NamedScalars{
    NamedScalar{"step", ScalarKind::State},       NamedScalar{"updates", ScalarKind::State},
    NamedScalar{"lr", ScalarKind::Schedule},      NamedScalar{"stop", ScalarKind::Flag},
    NamedScalar{"nonfinite", ScalarKind::Flag},   NamedScalar{"bad_parameter", ScalarKind::Flag},
    NamedScalar{"loss", ScalarKind::Metric},      NamedScalar{"grad_norm", ScalarKind::Metric},
    NamedScalar{"eval_loss", ScalarKind::Metric},
};

auto CheckNames(const Plan& plan, Findings& findings) -> bool {
  bool complete = true;
  for (const NamedScalar& named : NamedScalars) {
    const bool found = std::any_of(plan.scalars.begin(), plan.scalars.end(), [&](const Scalar& scalar) {
      return scalar.name == named.name && scalar.kind == named.kind;
    });
    if (!found) {
      findings.Add("scalar-missing"_rule, "no {} scalar is named {}, and the run looks for it", ToText(named.kind),
                   named.name);
    }
    complete = complete && found;
  }
  return complete;
}

/// What is read by name is what the ops write under that name.
auto CheckRoles(const Plan& plan, Findings& findings) -> void {
  const std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto expect = [&](std::string_view field, ScalarId id, std::string_view name) {
      if (plan.scalars[id].name != name) {
        findings.AddOp(SectionKind::Step, i, "scalar-role"_rule, "{} is {}; the run looks for {}", field,
                       plan.scalars[id].name, name);
      }
    };
    for (const ScalarUse& use : ScalarsOf(ops[i])) {
      if (use.effect == ScalarEffect::SetByAll || use.effect == ScalarEffect::Read) {
        expect(use.field, use.scalar, use.field);
      }
    }
  }
}

auto CheckMetric(const Plan& plan, Findings& findings, SectionKind section, std::string_view name) -> void {
  const ScalarId scalar = plan.ScalarNamed(name);
  int times = 0;
  ForEachOp(plan, [&](SectionKind other, size_t, const Op& op) {
    for (const ScalarUse& use : ScalarsOf(op)) {
      times += use.effect == ScalarEffect::SetByRank && use.scalar == scalar ? (other == section ? 1 : 2) : 0;
    }
  });
  const int expected = plan.section(section).ops.empty() ? 0 : 1;
  if (times != expected) {
    findings.Add("scalar-unwritten"_rule, "section {} does not read {} once, and no other section does",
                 ToText(section), name);
  }
}

}  // namespace

auto VerifyScalars(const Plan& plan, Findings& findings) -> void {
  if (!plan.Established(PassKind::Build) || !CheckNames(plan, findings) || !plan.Established(PassKind::Update)) {
    return;
  }
  CheckRoles(plan, findings);
  CheckMetric(plan, findings, SectionKind::Step, "loss");
  CheckMetric(plan, findings, SectionKind::Step, "grad_norm");
  CheckMetric(plan, findings, SectionKind::Eval, "eval_loss");
}

}  // namespace shardc
