// Scalars that the runner and its messages look up by role: each is there once, of its kind, and what the ops make of
// it is what the role says.
#include <array>
#include <set>
#include <utility>

#include "compiler/verify/internal.h"

namespace shardc {

namespace {

/// The roles that the run looks for in every plan.
constexpr std::array RequiredRoles{ScalarRole::Step, ScalarRole::Updates,   ScalarRole::Lr,
                                   ScalarRole::Stop, ScalarRole::NonFinite, ScalarRole::BadParameter,
                                   ScalarRole::Loss, ScalarRole::GradNorm,  ScalarRole::EvalLoss};

/// Asks that each role belongs to one scalar of its kind, or to one per head.
auto CheckRoles(const Plan& plan, Findings& findings) -> void {
  std::set<std::pair<ScalarRole, HeadId>> seen;
  for (const Scalar& scalar : plan.scalars) {
    if (!IsOfHead(scalar.role) && scalar.head.valid()) {
      findings.Add("scalar-head"_rule, "scalar {} names a head, and its role {} is of none", scalar.name,
                   ToText(scalar.role));
    }
    if (scalar.role == ScalarRole::None) {
      if (scalar.kind == ScalarKind::State) {
        findings.Add("state-role"_rule,
                     "state scalar {} has no role, and checkpoints know state scalars by their roles", scalar.name);
      }
      continue;
    }
    if (scalar.kind != KindOf(scalar.role)) {
      findings.Add("scalar-kind"_rule, "scalar {} has the role {} and is a {}; expected a {}", scalar.name,
                   ToText(scalar.role), ToText(scalar.kind), ToText(KindOf(scalar.role)));
    }
    if (!seen.insert({scalar.role, IsOfHead(scalar.role) ? scalar.head : HeadId{}}).second) {
      findings.Add("scalar-twice"_rule, "scalar {} has the role {}, and so has one before it", scalar.name,
                   ToText(scalar.role));
    }
  }
  for (const ScalarRole role : RequiredRoles) {
    if (!plan.FindScalar(role).valid()) {
      findings.Add("scalar-missing"_rule, "no scalar has the role {}, and the run looks for it", ToText(role));
    }
  }
}

/// Asks that the scalars that are read by their role are those that the ops write.
auto CheckOps(const Plan& plan, Findings& findings) -> void {
  const std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto expect = [&](std::string_view field, ScalarId id, ScalarRole role) {
      if (plan.scalars[id].role != role) {
        findings.AddOp(SectionKind::Step, i, "scalar-role"_rule, "{} is {}, of the role {}; expected the role {}",
                       field, plan.scalars[id].name, ToText(plan.scalars[id].role), ToText(role));
      }
    };
    for (const ScalarUse& use : ScalarsOf(ops[i])) {
      if (use.role != ScalarRole::None) {
        expect(use.field, use.scalar, use.role);
      }
    }
  }
}

/// Returns the section that reports the metric of this role; nothing for the role of another scalar.
auto SectionOf(ScalarRole role) -> std::optional<SectionKind> {
  switch (role) {
    case ScalarRole::Loss:
    case ScalarRole::GradNorm:
    case ScalarRole::TermLoss:
    case ScalarRole::Targets: return SectionKind::Step;
    case ScalarRole::EvalLoss:
    case ScalarRole::TermEvalLoss: return SectionKind::Eval;
    case ScalarRole::None:
    case ScalarRole::Step:
    case ScalarRole::Updates:
    case ScalarRole::Lr:
    case ScalarRole::Stop:
    case ScalarRole::NonFinite:
    case ScalarRole::BadParameter:
    case ScalarRole::Spike:
    case ScalarRole::LeftOut: return std::nullopt;
  }
  CHECK(false, "role {}", static_cast<int>(role));
}

/// Asks that each metric that is reported by its role is read once in the section that reports it, and nowhere else.
auto CheckMetrics(const Plan& plan, Findings& findings) -> void {
  // By scalar: the ops that read it in that section, and in others.
  struct Times {
    int here = 0;
    int elsewhere = 0;
  };
  std::vector<Times> times(static_cast<size_t>(plan.scalars.size()));
  ForEachOp(plan, [&](SectionKind section, size_t, const Op& op) {
    for (const ScalarUse& use : ScalarsOf(op)) {
      if (use.effect == ScalarEffect::SetByRank) {
        Times& own = times[static_cast<size_t>(use.scalar.index)];
        ++(SectionOf(plan.scalars[use.scalar].role) == section ? own.here : own.elsewhere);
      }
    }
  });
  for (const ScalarId id : plan.scalars.ids()) {
    const auto section = SectionOf(plan.scalars[id].role);
    const Times& own = times[static_cast<size_t>(id.index)];
    if (section && (own.here != (plan.section(*section).ops.empty() ? 0 : 1) || own.elsewhere > 0)) {
      findings.Add("scalar-unwritten"_rule, "section {} does not read {} once, and no other section does",
                   ToText(*section), plan.scalars[id].name);
    }
  }
}

}  // namespace

auto VerifyScalars(const Plan& plan, Findings& findings) -> void {
  if (!plan.Established(PassKind::Build)) {
    return;
  }
  CheckRoles(plan, findings);
  if (!findings.empty() || !plan.Established(PassKind::Update)) {
    return;
  }
  CheckOps(plan, findings);
  CheckMetrics(plan, findings);
}

}  // namespace shardc
