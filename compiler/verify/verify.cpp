#include "compiler/verify/verify.h"

#include <algorithm>

#include "compiler/ops/cuda/kernel_limits.h"
#include "compiler/plan/text.h"
#include "compiler/verify/internal.h"

namespace shardc {

auto Findings::Names() const -> const PlanNames& {
  if (!names_) {
    names_.emplace(plan_);
  }
  return *names_;
}

auto Findings::OpLine(SectionKind section, size_t index) const -> std::string {
  constexpr size_t Longest = 400;
  index = origins_ == nullptr ? index : (*origins_)[static_cast<size_t>(section)][index];
  std::string line = PrintOp(told_.section(section).ops[index], Names());
  if (line.size() > Longest) {
    line.replace(Longest, std::string::npos, "...");
  }
  return fmt::format("{} op {} `{}`", ToText(section), index, line);
}

auto Findings::Spend(size_t steps) -> bool {
  if (work_left_ < 0) {
    return false;
  }
  work_left_ -= static_cast<int64_t>(steps);
  if (work_left_ < 0) {
    Add("too-complex"_rule, "the byte ranges of this plan take over {} steps to follow", MostWork);
  }
  return work_left_ >= 0;
}

auto SameBytes(const Plan& plan, ValueId a, ValueId b) -> bool {
  const Value& first = plan.values[a];
  const Value& second = plan.values[b];
  return first.buffer == second.buffer && first.offset == second.offset && first.bytes() == second.bytes();
}

auto RangeOf(const Value& value, const RankPoint& point) -> Interval {
  const int64_t begin = value.offset.Evaluate(point);
  return {begin, begin + value.bytes().value};
}

auto BoundsOf(const RankExpr& expr, const Mesh& mesh, int64_t repeats, int64_t steps)
    -> std::optional<std::pair<int64_t, int64_t>> {
  constexpr int64_t Limit = int64_t{1} << 62;
  // As most are.
  if (expr.is_constant() && expr.base < Limit && expr.base > -Limit) {
    return std::pair{expr.base, expr.base};
  }
  int64_t low = expr.base;
  int64_t high = expr.base;
  const auto add = [&](int64_t factor, int64_t last) {
    int64_t product = 0;
    if (factor == 0) {
      return true;
    }
    if (__builtin_mul_overflow(factor, last, &product)) {
      return false;
    }
    int64_t& bound = product < 0 ? low : high;
    return !__builtin_add_overflow(bound, product, &bound) && bound < Limit && bound > -Limit;
  };
  bool fits = expr.base < Limit && expr.base > -Limit && add(expr.repeat, repeats - 1) && add(expr.step, steps);
  for (size_t i = 0; i < NumAxes; ++i) {
    fits = fits && add(expr.axis[i], mesh.size(static_cast<Axis>(i)) - 1);
  }
  if (!fits) {
    return std::nullopt;
  }
  if (expr.clamp) {
    if (expr.clamp->begin > expr.clamp->end) {
      return std::nullopt;
    }
    low = std::clamp(low, expr.clamp->begin, expr.clamp->end);
    high = std::clamp(high, expr.clamp->begin, expr.clamp->end);
  }
  return expr.equals ? std::pair<int64_t, int64_t>{0, 1} : std::pair{low, high};
}

/// Compares the scratch with ScratchBytes, but only if all constraints of the op hold: its formula divides by sizes
/// that they bound.
template <HasScratch Body>
static auto VerifyScratch(const Body& op, const Plan& plan, OpCheck& check) -> void {
  const Bytes needed = ScratchBytes(op, plan);
  if (op.scratch.valid()) {
    const Value& scratch = plan.values[op.scratch];
    check.Expect(scratch.dtype == DType::F32 && scratch.bytes() == needed && needed > Bytes{}, "scratch-size"_rule,
                 "scratch has {} B of {}, needs {} B of f32", scratch.bytes().value, ToText(scratch.dtype),
                 needed.value);
  } else if (plan.Established(PassKind::Schedule)) {
    check.Expect(needed == Bytes{}, "scratch-size"_rule, "there is no scratch, {} B are needed", needed.value);
  }
}

/// Compares the sizes of the op with those that its kernel takes.
static auto VerifyKernel(const OpBody& body, const Plan& plan, OpCheck& check) -> void {
  const auto limit = FindKernelLimit(body, plan);
  check.Expect(!limit, "kernel-size"_rule, "{} {} on {}, {} at most", limit ? limit->size : 0, limit ? limit->what : "",
               ToText(plan.device), limit ? limit->most : 0);
}

auto VerifyOps(const Plan& plan, Findings& findings) -> void {
  const auto verify = [&](const Op& op, OpCheck& check) {
    VisitBody(op.body, [&]<class Body>(const Body& body) {
      Verify(body, plan, check);
      if (check.failures().empty()) {
        VerifyKernel(body, plan, check);
      }
      if constexpr (HasScratch<Body>) {
        if (check.failures().empty()) {
          VerifyScratch(body, plan, check);
        }
      }
    });
  };
  // The text of an op is made only for the few that fail.
  OpCheck without_line("");
  ForEachOp(plan, [&](SectionKind section, size_t index, const Op& op) {
    if (findings.full()) {
      return;
    }
    verify(op, without_line);
    if (!without_line.failures().empty()) {
      without_line = OpCheck("");
      OpCheck check(findings.OpLine(section, index));
      verify(op, check);
      for (const std::string& failure : check.failures()) {
        findings.Push(failure);
      }
    }
  });
}

/// A part of the verifier, and whether it looks at the plan's fused ops or at what these are made of.
struct VerifierPart {
  auto(*verify)(const Plan& plan, Findings& findings) -> void;
  bool of_parts = false;
};

auto VerifyPlan(const Plan& plan) -> std::vector<std::string> {
  // What a part finds, later ones would find the consequences of: the first that finds anything is the last to look.
  static constexpr VerifierPart parts[] = {{VerifyStructure},
                                           {VerifySources},
                                           {VerifyMemory},
                                           {VerifySegments},
                                           {VerifyOps},
                                           {VerifyPredicates},
                                           {VerifySections},
                                           {VerifyState},
                                           {VerifySaves},
                                           {VerifyGathers},
                                           {VerifyRoles},
                                           {VerifyTokens, true},
                                           {VerifyPlacements, true},
                                           {VerifySamples},
                                           {VerifyDocuments},
                                           {VerifyAdapters, true},
                                           {VerifyHeader, true},
                                           {VerifyScalars},
                                           {VerifyUpdate},
                                           {VerifyTriggers},
                                           {VerifyOffsets},
                                           {VerifyLives},
                                           {VerifyEvents},
                                           {VerifyOrder},
                                           {VerifyBackward, true},
                                           {VerifyRecipe}};
  Findings findings(plan);
  // The parts of ops are asked for once their operands are known to be sound.
  std::optional<PlanInParts> in_parts;
  std::optional<Findings> of_parts;
  for (const VerifierPart& part : parts) {
    if (part.of_parts && !in_parts && HasFusedOps(plan)) {
      in_parts = InParts(plan);
      of_parts.emplace(*in_parts, plan);
    }
    Findings& own = part.of_parts && of_parts ? *of_parts : findings;
    part.verify(part.of_parts && in_parts ? in_parts->plan : plan, own);
    if (!own.empty()) {
      return std::move(own).list();
    }
  }
  return {};
}

auto VerifyRunnable(const Plan& plan) -> std::vector<std::string> {
  Findings findings(plan);
  const std::vector<PassKind> expected = PassesFor(plan.device);
  const auto [missing, other] = std::ranges::mismatch(expected, plan.passes);
  if (missing != expected.end()) {
    findings.Add("pass-missing"_rule, "pass {} was not run in its place", ToText(*missing));
  }
  if (plan.passes.size() > expected.size()) {
    findings.Add("pass-missing"_rule, "{} passes were run, there are {}", plan.passes.size(), expected.size());
  }
  if (!plan.disabled.empty()) {
    findings.Add("pass-disabled"_rule, "pass {} was switched off", ToText(plan.disabled[0]));
  }
  return findings.empty() ? VerifyPlan(plan) : std::move(findings).list();
}

}  // namespace shardc
