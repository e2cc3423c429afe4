// Rules of [train].

#include "compiler/base/spike_window.h"
#include "compiler/check/check_context.h"
#include "compiler/recipe/owned_keys.h"

namespace shardc {

auto CheckTrain(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const Located<int64_t>& eval_every = recipe.train.eval_every;
  if (eval_every.is_set && context.IsSound(eval_every, recipe.data.eval_tokens) && *eval_every > 0 &&
      *recipe.data.eval_tokens == 0 && !recipe.data.eval.is_set) {
    context.diags().Report(eval_every.at, DiagnosticKind::KeyHasNoEffect, "eval_every",
                           "[data] has no `eval_tokens` and no `eval`, so there is nothing to evaluate");
  }
  const Located<int64_t>& max_skipped = recipe.train.max_skipped;
  const Located<OneOf<OnSpike>>& on_spike = recipe.train.on_spike;
  if (max_skipped.is_set && context.IsSound(max_skipped, recipe.train.on_nonfinite, on_spike) &&
      !SkipsUpdates(recipe)) {
    context.diags().Report(max_skipped.at, DiagnosticKind::KeyHasNoEffect, "max_skipped",
                           "`on_nonfinite` is \"stop\", so no update is skipped");
  }
  const Located<int64_t>& window = recipe.train.spike_window;
  if (max_skipped.is_set && SkipsUpdates(recipe) &&
      context.IsSound(max_skipped, recipe.train.on_nonfinite, on_spike, window, recipe.train.steps)) {
    const int64_t unjudged = *recipe.train.on_nonfinite == OnNonfinite::Skip ? 0 : LeastLossesToJudge(*window);
    const int64_t most = *recipe.train.steps - unjudged;
    if (most > 0 && *max_skipped >= most) {
      context.diags().Report(
          max_skipped.at, DiagnosticKind::KeyHasNoEffect, "max_skipped",
          fmt::format("a run of {} steps leaves out at most {} updates{}", *recipe.train.steps, most,
                      unjudged > 0 ? fmt::format(", because its first {} losses are not judged", unjudged) : ""));
    }
  }
  const auto needs_on_spike = [&](const auto& key, std::string_view name) {
    if (key.is_set && !JudgesSpikes(recipe)) {
      context.diags().Report(key.at, DiagnosticKind::KeyHasNoEffect, name,
                             "`on_spike` is not set, so no loss is judged");
    }
  };
  needs_on_spike(recipe.train.spike_window, "spike_window");
  needs_on_spike(recipe.train.spike_sigma, "spike_sigma");
  if (JudgesSpikes(recipe) && context.IsSound(on_spike, window, recipe.train.steps) &&
      *recipe.train.steps <= LeastLossesToJudge(*window)) {
    auto builder = context.diags().Build(
        on_spike.at, DiagnosticKind::KeyHasNoEffect, "on_spike",
        fmt::format("a loss is judged once {} losses came before it (`spike_window` is {}), and the run has {} steps",
                    LeastLossesToJudge(*window), *window, *recipe.train.steps));
    if (window.is_set) {
      builder.Note(window.at, "`spike_window` set here");
    }
    builder.Emit();
  }
}

}  // namespace shardc
