// The end of a step: norm, clipping, agreement, optimizer, metrics.
//
// Needs: gradient slices in `step`. Gives: every trainable sub-vector updated once per step, on all ranks or on none.
//   1. squares of all owned gradient elements, summed over the mesh; the first parameter with a non-finite one. Vectors
//      that every rank along tp holds whole are added after the sum over tp, so each parameter counts once
//   2. control: the ranks agree on a stop, on the non-finite parameter, and if losses are judged on whether this one is
//      a spike, before anything is changed; either that halts the run, or updates that are left out one after another
//      are counted, and too many halt it
//   3. clip factor, then the optimizer on every sub-vector unless the update is left out
//   4. count the step, and the update if it was made
#include "compiler/ops/emitter.h"
#include "compiler/ops/term_axes.h"
#include "compiler/passes/optimizers.h"
#include "compiler/passes/pass.h"

namespace shardc {

/// Counts updates that are left out one after another; too many halt the run.
static auto HaltAfterSkips(Plan& plan, const Recipe& recipe, Emitter& emitter, ScalarId left_out) -> void {
  if (*recipe.train.max_skipped == 0) {
    return;
  }
  emitter.set_origin(OriginOf(recipe.train.max_skipped, "train.max_skipped"));
  const ScalarId skipped = plan.scalars.Add({"skipped", ScalarKind::Flag, ""});
  emitter.Emit(op::Increment{.scalar = skipped}).when = {.scalar = left_out};
  emitter.Emit(op::Reset{.scalar = skipped}).when = {.scalar = left_out, .negated = true};
  plan.halts.push_back({.scalar = skipped, .above = *recipe.train.max_skipped, .code = ExitCode::Diverged});
}

namespace {

/// The sum of the squares of all gradients, and the first parameter with a non-finite gradient.
struct SumOfSquares {
  ValueId sum;
  ValueId bad;
};

}  // namespace

static auto EmitSumOfSquares(Plan& plan, Emitter& emitter) -> SumOfSquares {
  const ValueType sum_type{DType::F64, {1}};
  const ValueType bad_type{DType::I64, {1}};
  SumOfSquares sums;
  const auto add_squares = [&](SubVectorId id) {
    const std::string name = NameOf(plan, plan.sub_vectors[id]);
    const auto next_of = [&](ValueId last, const ValueType& type, const std::string& what) {
      return last.valid() ? emitter.Alias(last, type, what) : emitter.New(type, Category::Workspace, what);
    };
    const ValueId next_sum = next_of(sums.sum, sum_type, name + ".squares");
    const ValueId next_bad = next_of(sums.bad, bad_type, name + ".bad");
    emitter.Emit(op::SumSquares{.gradient = plan.sub_vectors[id].gradient,
                                .sum = next_sum,
                                .sum_onto = sums.sum,
                                .bad = next_bad,
                                .bad_onto = sums.bad,
                                .sub_vector = id});
    sums = {next_sum, next_bad};
    SetPlacement(SquaresAxes(plan.mesh, plan.sub_vectors[id]), Placement::Partial(), plan.values[sums.sum].placement);
  };
  const auto sum_over = [&](AxisSet sharing, const char* name) {
    const AxisSet axes = Spread(plan.mesh, sharing);
    if (sums.sum.valid() && axes != AxisSet{}) {
      const ValueId whole = emitter.Alias(sums.sum, sum_type, name);
      Placements placement = plan.values[sums.sum].placement;
      SetPlacement(axes, {}, placement);
      plan.values[whole].placement = placement;
      emitter.Emit(op::AllReduce{.x = sums.sum, .y = whole, .axes = axes});
      sums.sum = whole;
    }
  };
  // What is cut comes first: its sum over the ranks that share each matrix has nothing else in it then.
  for (const bool is_whole : {false, true}) {
    for (const SubVectorId id : plan.sub_vectors.ids()) {
      if (plan.sub_vectors[id].trainable && IsWhole(plan.sub_vectors[id], plan.mesh) == is_whole) {
        add_squares(id);
      }
    }
    if (!is_whole) {
      sum_over(AxesSharing(Shared::Matrices), "squares.over_tp");
    }
  }
  // A replica holds a copy of its own of the state: the sum is complete without the others.
  sum_over(AxesSharing(Shared::State), "squares.whole");
  return sums;
}

auto Update(Plan plan, PassContext& context) -> ErrorOr<Plan> {
  const Recipe& recipe = *context.recipe;
  const OptimizerSection& optimizer = recipe.optimizer;
  Emitter emitter(&plan, &plan.section(SectionKind::Step).ops, PassKind::Update);
  emitter.set_origin(OriginOf(optimizer.clip_norm, "optimizer.clip_norm"));
  const auto [sum, bad] = EmitSumOfSquares(plan, emitter);

  emitter.set_origin(OriginOf(recipe.train.on_nonfinite, "train.on_nonfinite"));
  const ScalarId nonfinite = plan.ScalarOf(ScalarRole::NonFinite);
  const ScalarId spike = plan.FindScalar(ScalarRole::Spike);
  const ScalarId left_out = spike.valid() ? plan.ScalarOf(ScalarRole::LeftOut) : nonfinite;
  emitter.Emit(op::Control{.bad = bad,
                           .stop = plan.ScalarOf(ScalarRole::Stop),
                           .nonfinite = nonfinite,
                           .bad_parameter = plan.ScalarOf(ScalarRole::BadParameter),
                           .loss = spike.valid() ? plan.ScalarOf(ScalarRole::Loss) : ScalarId{},
                           .spike = spike,
                           .left_out = plan.FindScalar(ScalarRole::LeftOut),
                           .axes = Spread(plan.mesh, AxisSet::All())});
  bool skips = false;
  switch (*recipe.train.on_nonfinite) {
    case OnNonfinite::Stop: plan.halts.push_back({.scalar = nonfinite, .code = ExitCode::Diverged}); break;
    case OnNonfinite::Skip: skips = true; break;
  }
  if (spike.valid()) {
    switch (*recipe.train.on_spike) {
      case OnSpike::Stop: plan.halts.push_back({.scalar = spike, .code = ExitCode::Diverged}); break;
      case OnSpike::Skip: skips = true; break;
    }
  }
  if (skips) {
    HaltAfterSkips(plan, recipe, emitter, left_out);
  }

  emitter.set_origin(OriginOf(optimizer.clip_norm, "optimizer.clip_norm"));
  const ValueType number{DType::F64, {1}};
  const ValueId norm = emitter.New(number, Category::Workspace, "grad_norm");
  const ValueId factor = emitter.New(number, Category::Workspace, "clip_factor");
  emitter.Emit(op::ClipFactor{.sum = sum, .norm = norm, .factor = factor, .max_norm = *optimizer.clip_norm});
  emitter.Emit(op::ReadScalar{.value = norm, .to = plan.ScalarOf(ScalarRole::GradNorm)});

  emitter.set_origin(OriginOf(optimizer.lr, "optimizer.lr"));
  const Predicate sound{.scalar = left_out, .negated = true};
  for (const SubVectorId id : plan.sub_vectors.ids()) {
    if (plan.sub_vectors[id].trainable) {
      emitter.Emit(UpdateOp(optimizer, plan, id, factor)).when = sound;
    }
  }
  emitter.set_origin({});
  emitter.Emit(op::Increment{.scalar = plan.ScalarOf(ScalarRole::Updates)}).when = sound;
  emitter.Emit(op::Increment{.scalar = plan.ScalarOf(ScalarRole::Step)});
  return plan;
}

}  // namespace shardc
