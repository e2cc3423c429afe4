// Rules of [optimizer]: the moments' decay rates, momentum for Nesterov's, and a learning rate that has a value of 0 or
// more.

#include "compiler/check/check_context.h"
#include "compiler/recipe/owned_keys.h"

namespace shardc {

static auto CheckNesterov(CheckContext& context) -> void {
  const OptimizerSection& optimizer = context.recipe().optimizer;
  if (!IsLacked(context.recipe(), "optimizer", "nesterov") && *optimizer.nesterov && *optimizer.momentum == 0 &&
      context.IsSound(optimizer.nesterov, optimizer.momentum, optimizer.name)) {
    context.diags().Report(optimizer.nesterov.at, DiagnosticKind::NesterovWithoutMomentum);
  }
}

static auto CheckBetas(CheckContext& context) -> void {
  const Located<std::vector<double>>& betas = context.recipe().optimizer.betas;
  if (IsLacked(context.recipe(), "optimizer", "betas") || !context.IsSound(betas)) {
    return;
  }
  bool is_sound = betas->size() == 2;
  for (const double beta : *betas) {
    is_sound = is_sound && beta >= 0 && beta < 1;
  }
  if (!is_sound) {
    context.diags().Report(betas.at, DiagnosticKind::BetasOutOfRange, fmt::format("[{}]", fmt::join(*betas, ", ")));
  }
}

/// The schedule is looked at where schedules go wrong: at its ends, just after the start, and half-way.
static auto CheckLearningRate(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const Located<Formula>& lr = recipe.optimizer.lr;
  if (!context.IsSound(lr)) {
    return;
  }
  const ExprResult<Expr> expr = ParseExpr(lr->text, ExprKind::Schedule);
  if (!expr.ok()) {
    ReportExprErrors(context, lr.at, expr.errors);
    return;
  }
  if (!context.IsSound(recipe.train.steps)) {
    return;
  }
  const int64_t steps = *recipe.train.steps;
  for (const int64_t step : {int64_t{0}, int64_t{1}, steps / 2, steps - 1}) {
    if (step >= steps) {
      continue;
    }
    const ExprVariables variables{{"step", static_cast<double>(step)}, {"steps", static_cast<double>(steps)}};
    const ExprResult<double> value = EvaluateNumber(expr.value, variables);
    if (!value.ok()) {
      ReportStepErrors(context, lr.at, value.errors, step);
      return;
    }
    if (value.value < 0) {
      context.diags().Report(lr.at, DiagnosticKind::LrNegative, value.value, step);
      return;
    }
  }
}

auto CheckOptimizer(CheckContext& context) -> void {
  CheckBetas(context);
  CheckNesterov(context);
  CheckLearningRate(context);
}

}  // namespace shardc
