// The backward of a step against its forward. The forward is taken as it is: nothing in a plan says what model is
// meant. From it the backward is made again, by the VJP of each op, and followed on terms; the plan's own step is
// followed too, and for each parameter the terms that go into its update must be those, of every microbatch once. Since
// terms do not tell what was computed again from what was kept, or gathered again from what stayed, this covers
// recomputation, accumulation, chunks of the loss and what is left out for frozen parameters.
#include <algorithm>

#include "compiler/verify/step_terms.h"

namespace shardc {

namespace {

class GradientVerifier {
 public:
  explicit GradientVerifier(StepTerms* step)
      : step_(*step), plan_(step->plan()), findings_(step->findings()), terms_(step->terms()) {}

  auto Run() -> void;

 private:
  /// Returns the gradient vectors that were added up in the gradient of an update: one per microbatch, or their sum.
  auto VectorsOf(SubVectorId id) -> std::vector<TermId>;
  auto CheckGradient(SubVectorId id, const Segment& segment, const std::vector<TermId>& vectors) -> bool;
  auto ReportDifference(std::string_view parameter, TermId expected, TermId found, size_t index) -> void;

  StepTerms& step_;
  const Plan& plan_;
  Findings& findings_;
  Terms& terms_;
};

/// Which sums over ranks went into a gradient: each vector is reduced over the axes of its sub-vector, and the sum of
/// these over the axes that are left, each axis once.
class RankSums {
 public:
  RankSums(const Plan& plan, SubVectorId id) : mesh_(plan.mesh), sub_vector_(plan.sub_vectors[id]) {}

  /// Adds an all_reduce between the gradients and the update. Called from the last all_reduce to the first.
  auto AddReduced(AxisSet axes, bool of_all) -> void {
    const AxisSet own = Spread(mesh_, axes);
    is_sound_ = is_sound_ && of_all && later_.Without(own) == later_;
    later_ = later_ | own;
  }
  auto AddScattered(AxisSet axes) -> void {
    is_sound_ = is_sound_ && Spread(mesh_, axes) == Spread(mesh_, sub_vector_.axes);
  }
  auto are_sound() const -> bool { return is_sound_ && later_ == Expected(); }
  auto Expected() const -> AxisSet { return CopyAxes(sub_vector_, mesh_); }

 private:
  const Mesh& mesh_;
  const SubVector& sub_vector_;
  AxisSet later_;
  bool is_sound_ = true;
};

auto GradientVerifier::VectorsOf(SubVectorId id) -> std::vector<TermId> {
  const StepTerms::Update& update = step_.UpdateOf(id);
  RankSums sums(plan_, id);
  std::vector<TermId> vectors;
  const auto add = [&](TermId added) {
    const Term& term = terms_[added];
    if (term.facts().collective != CollectiveKind::ReduceScatter) {
      vectors.push_back(added);
      return;
    }
    sums.AddScattered(CollectiveOf(*term.op)->axes);
    const Term& vector = terms_[term.operands[0]];
    vectors.push_back(vector.facts().meaning == Meaning::Cast ? vector.operands[0] : term.operands[0]);
  };
  TermId gradient = update.gradient;
  while (!terms_.IsZero(gradient)) {
    const Term term = terms_[gradient];
    if (term.kind == TermKind::Sum) {
      add(term.operands[1]);
      gradient = term.operands[0];
    } else if (term.facts().collective == CollectiveKind::AllReduce) {
      sums.AddReduced(CollectiveOf(*term.op)->axes, vectors.empty());
      gradient = term.operands[0];
    } else if (term.kind == TermKind::Joined && term.ranges.size() == 1 &&
               terms_[term.ranges[0].term].facts().collective == CollectiveKind::AllReduce) {
      // One of several that were summed side by side.
      const Term& all = terms_[term.ranges[0].term];
      sums.AddReduced(CollectiveOf(*all.op)->axes, vectors.empty());
      gradient = terms_.Slice(all.operands[0], term.ranges[0].begin, term.ranges[0].end);
    } else if (term.facts().meaning == Meaning::Sum) {
      vectors.push_back(term.operands[0]);
      gradient = term.operands[1];
    } else {
      add(gradient);
      break;
    }
  }
  if (!sums.are_sound()) {
    findings_.AddOp(SectionKind::Step, update.index, "gradient-sums"_rule,
                    "takes a gradient of {} that is not summed once over {} and then once over {}",
                    NameOf(plan_, plan_.sub_vectors[id]), ToText(Spread(plan_.mesh, plan_.sub_vectors[id].axes)),
                    ToText(sums.Expected()));
  }
  std::ranges::reverse(vectors);
  return vectors;
}

auto GradientVerifier::CheckGradient(SubVectorId id, const Segment& segment, const std::vector<TermId>& vectors)
    -> bool {
  const size_t update = step_.UpdateOf(id).index;
  const std::string& name = plan_.parameters[segment.parameter].name;
  std::vector<TermId> found;
  for (const TermId vector : vectors) {
    const int64_t size = SizeOf(DType::F32);
    if (terms_[vector].bytes != plan_.sub_vectors[id].length * size) {
      findings_.AddOp(SectionKind::Step, update, "backward-differs"_rule,
                      "takes {}, which is not a sum of the gradients of all elements of {}", step_.Describe(vector),
                      NameOf(plan_, plan_.sub_vectors[id]));
      return false;
    }
    const std::vector<TermId> addends = terms_.Addends(terms_.Slice(vector, segment.begin * size, segment.end * size));
    found.insert(found.end(), addends.begin(), addends.end());
  }
  const std::vector<TermId>& expected = step_.ExpectedOf(segment.parameter);
  const auto [wanted, other] = std::ranges::mismatch(expected, found);
  if (wanted != expected.end() && other != found.end()) {
    ReportDifference(name, *wanted, *other, update);
    return false;
  }
  if (wanted != expected.end() || other != found.end()) {
    findings_.AddOp(SectionKind::Step, update, "backward-differs"_rule,
                    "takes {} terms for the gradient of {}, the forward's backward has {}: {} is {}", found.size(),
                    name, expected.size(), wanted != expected.end() ? step_.Describe(*wanted) : step_.Describe(*other),
                    wanted != expected.end() ? "missing" : "too many");
    return false;
  }
  return true;
}

auto GradientVerifier::Run() -> void {
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    const StepTerms::Update& update = step_.UpdateOf(id);
    if (!update.is_made) {
      continue;
    }
    const std::vector<TermId> vectors = VectorsOf(id);
    if (!findings_.empty()) {
      return;
    }
    for (const Segment& segment : plan_.sub_vectors[id].segments) {
      // One finding: those of other parameters would follow from the same op.
      if (!CheckGradient(id, segment, vectors)) {
        return;
      }
    }
  }
}

auto GradientVerifier::ReportDifference(std::string_view parameter, TermId expected, TermId found, size_t index)
    -> void {
  std::string field = "gradient";
  // Down to the first op that is another, or takes another operand that no op makes.
  for (bool deeper = true; deeper;) {
    deeper = false;
    const Term& e = terms_[expected];
    const Term& f = terms_[found];
    if (e.kind != f.kind) {
      break;
    }
    if (e.kind == TermKind::Result) {
      index = step_.IndexOf(f).value_or(index);
      if (e.op->kind() != f.op->kind() || e.result != f.result ||
          step_.ConstantsOf(*e.op) != step_.ConstantsOf(*f.op)) {
        break;
      }
    }
    const auto [wanted, other] = std::ranges::mismatch(e.operands, f.operands);
    if (wanted != e.operands.end() && other != f.operands.end()) {
      if (e.kind == TermKind::Result) {
        field = AccessesOf(f.op->body)[static_cast<size_t>(other - f.operands.begin())].field;
      }
      expected = *wanted;
      found = *other;
      deeper = true;
    } else if (e.kind == TermKind::Joined) {
      for (size_t i = 0; i < std::min(e.ranges.size(), f.ranges.size()) && !deeper; ++i) {
        if (e.ranges[i].term != f.ranges[i].term) {
          expected = e.ranges[i].term;
          found = f.ranges[i].term;
          deeper = true;
        }
      }
    }
  }
  findings_.AddOp(SectionKind::Step, index, "backward-differs"_rule,
                  "for the gradient of {}, the forward's backward has {} here (as {}), and this is {}", parameter,
                  step_.Describe(expected), field, step_.Describe(found));
}

}  // namespace

auto VerifyGradients(StepTerms& step) -> void { GradientVerifier(&step).Run(); }

auto VerifyBackward(const Plan& plan, Findings& findings) -> void {
  // Once, of the whole plan: what passes leave on the way is in the making.
  if (!plan.Established(PassKind::Synchronize) || !plan.Established(PassKind::Update)) {
    return;
  }
  const auto verify_at = [&](const RankPoint& point) {
    StepTerms step(plan, findings, point);
    if (step.Follow()) {
      VerifyGradients(step);
      VerifyNorm(step);
      VerifyEvaluation(step);
      VerifyMetrics(step);
    }
  };
  verify_at({});
  // Offsets are affine in the coordinates: what holds for the first rank and for the next along each axis holds for
  // all.
  for (int i = 0; i < NumAxes && findings.empty(); ++i) {
    const bool differs = std::ranges::any_of(
        plan.values, [&](const Value& value) { return value.offset.axis[static_cast<size_t>(i)] != 0; });
    if (differs) {
      RankPoint point;
      point.coordinates[static_cast<size_t>(i)] = 1;
      verify_at(point);
    }
  }
}

}  // namespace shardc
