// Rules of [precision]: an override says something. Which units its pattern matches is for the passes to judge.
#include "compiler/check/check_context.h"

namespace shardc {

auto CheckPrecision(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  if (recipe.precision.frozen.is_set && !recipe.adapter.kind.is_set && recipe.optimizer.frozen->empty() &&
      context.IsSound(recipe.precision.frozen, recipe.optimizer.frozen)) {
    context.diags().Report(recipe.precision.frozen.at, DiagnosticKind::KeyHasNoEffect, "frozen",
                           "no parameter is frozen; optimizer.frozen names some, and [adapter] freezes all others");
  }
  for (const PrecisionOverride& rule : context.recipe().precision.override) {
    if (!rule.compute.is_set && !rule.master.is_set && !rule.reduce.is_set) {
      context.diags().Report(rule.at, DiagnosticKind::MissingKey, "compute", "[[precision.override]]",
                             "an override names one or more of compute, master and reduce");
    }
  }
}

}  // namespace shardc
