// Rules of [recompute]: a choice of blocks without a fault, something to save for the policy that saves, and no key
// that the policy does not read.

#include <algorithm>

#include "compiler/check/check_context.h"
#include "compiler/check/expression_place.h"
#include "compiler/expr/layer_choice.h"

namespace shardc {

static auto CheckSave(CheckContext& context) -> void {
  const RecomputeSection& recompute = context.recipe().recompute;
  const auto& save = recompute.save;
  if (*recompute.policy != RecomputePolicy::Selective) {
    if (save.is_set) {
      context.diags()
          .Build(save.at, DiagnosticKind::KeyHasNoEffect, "save",
                 fmt::format("`policy` is \"{}\"; \"selective\" reads it", recompute.policy->text()))
          .Emit();
    }
    return;
  }
  if (save->empty()) {
    context.diags()
        .Build(save.is_set ? save.at : recompute.policy.at, DiagnosticKind::SelectiveSavesNothing,
               save.is_set ? "is empty" : "is not set")
        .Help("use policy = \"full\", or name what is kept: save = [\"attention\"]")
        .Emit();
  }
  if (std::find(save->begin(), save->end(), SavedResult::DownProj) != save->end()) {
    context.diags()
        .Build(PlaceInList(context.diags().sources(), save.at, "down_proj"), DiagnosticKind::KeyHasNoEffect,
               "down_proj", "nothing in backward reads its result, so it is not computed again")
        .Emit();
  }
}

auto CheckRecompute(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const RecomputeSection& recompute = recipe.recompute;
  // Without sound sizes there are no blocks to look at, but a text to read.
  const bool has_sizes = context.IsSound(recipe.model.layers, recipe.model.hidden);
  ReportExprErrors(
      context, recompute.layers.at,
      ChooseLayers(recompute.layers->text, has_sizes ? *recipe.model.layers : 0, *recipe.model.hidden).errors);
  if (!context.IsSound(recompute.policy, recompute.save)) {
    return;
  }
  if (*recompute.policy == RecomputePolicy::None && recompute.layers->text != "true") {
    context.diags()
        .Build(recompute.layers.at, DiagnosticKind::KeyHasNoEffect, "layers",
               "`policy` is \"none\", so no block is computed again")
        .Emit();
  }
  CheckSave(context);
}

}  // namespace shardc
