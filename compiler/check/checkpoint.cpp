// Rules of [checkpoint].

#include <algorithm>

#include "compiler/check/check_context.h"

namespace shardc {

/// Checks that the run saves each checkpoint that is to be kept for good.
static auto CheckKept(CheckContext& context) -> void {
  const CheckpointSection& checkpoint = context.recipe().checkpoint;
  const Located<int64_t>& steps = context.recipe().train.steps;
  if (!context.IsSound(checkpoint.every, checkpoint.keep_every, checkpoint.keep_steps, steps)) {
    return;
  }
  const int64_t every = *checkpoint.every;
  if (*checkpoint.keep_every > 0 && every == 0) {
    context.diags().Report(checkpoint.keep_every.at, DiagnosticKind::KeptUnsaved, "keep_every", "`every` is 0");
  }
  const auto is_saved = [&](int64_t step) { return step > 0 && step <= *steps && every > 0 && step % every == 0; };
  const auto unsaved = std::ranges::find_if_not(*checkpoint.keep_steps, is_saved);
  if (unsaved != checkpoint.keep_steps->end()) {
    const std::string why = every == 0 ? std::string("`every` is 0")
                            : *unsaved > 0 && *unsaved > *steps
                                ? fmt::format("step {} is after the last", *unsaved)
                                : fmt::format("step {} is no multiple of {}", *unsaved, every);
    context.diags().Report(checkpoint.keep_steps.at, DiagnosticKind::KeptUnsaved, "keep_steps", why);
  }
}

auto CheckCheckpoint(CheckContext& context) -> void {
  const Located<std::string>& dir = context.recipe().checkpoint.dir;
  if (dir.is_set && context.IsSound(dir)) {
    CheckPath(context, dir.at, "dir", *dir, "directory");
  }
  CheckKept(context);
}

}  // namespace shardc
