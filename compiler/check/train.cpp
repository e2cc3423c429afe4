// Rules of [train].

#include "compiler/check/check_context.h"

namespace shardc {

auto CheckTrain(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const Located<int64_t>& eval_every = recipe.train.eval_every;
  if (eval_every.is_set && context.IsSound(eval_every, recipe.data.eval_tokens) && *eval_every > 0 &&
      *recipe.data.eval_tokens == 0) {
    context.diags()
        .Build(eval_every.at, DiagnosticKind::KeyHasNoEffect, "eval_every",
               "`eval_tokens` in [data] is 0, so there is nothing to evaluate")
        .Emit();
  }
  const Located<int64_t>& max_skipped = recipe.train.max_skipped;
  if (max_skipped.is_set && context.IsSound(max_skipped, recipe.train.on_nonfinite) &&
      *recipe.train.on_nonfinite != OnNonfinite::Skip) {
    context.diags()
        .Build(max_skipped.at, DiagnosticKind::KeyHasNoEffect, "max_skipped",
               "`on_nonfinite` is \"stop\", so no update is skipped")
        .Emit();
  }
}

}  // namespace shardc
