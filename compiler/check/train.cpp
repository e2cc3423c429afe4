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
}

}  // namespace shardc
