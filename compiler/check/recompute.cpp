// Rules of [recompute]: a choice of blocks without a fault, something to save for the policy that saves, and no key
// that the policy does not read.

#include <algorithm>

#include "compiler/check/check_context.h"
#include "compiler/check/expression_place.h"
#include "compiler/expr/layer_choice.h"
#include "compiler/model/model_family.h"

namespace shardc {

/// Each word of `save` against the projections that a block of the family has.
static auto CheckWords(CheckContext& context, const ParameterSpecs& block) -> void {
  const auto& save = context.recipe().recompute.save;
  std::vector<std::string_view> known{SavedAttention};
  for (const ParameterSpec& spec : block) {
    if (!spec.projection.empty()) {
      known.push_back(spec.projection);
    }
  }
  for (const std::string& word : *save) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      ReportUnknownWord(context, PlaceInList(context.diags().sources(), save.at, word), "save", word, known);
      context.MarkFaulty(save);
    }
  }
}

/// The last projection of a block ends in the residual stream, which the next block keeps.
static auto WarnOfUnreadResults(CheckContext& context, const ParameterSpecs& block) -> void {
  const auto& save = context.recipe().recompute.save;
  for (const ParameterSpec& spec : block) {
    if (spec.kind == ParameterKind::Down && std::find(save->begin(), save->end(), spec.projection) != save->end()) {
      context.diags().Report(PlaceInList(context.diags().sources(), save.at, spec.projection),
                             DiagnosticKind::KeyHasNoEffect, spec.projection,
                             "nothing in backward reads its result, so it is not computed again");
    }
  }
}

static auto CheckSave(CheckContext& context, const ParameterSpecs& block) -> void {
  const RecomputeSection& recompute = context.recipe().recompute;
  const auto& save = recompute.save;
  if (*recompute.policy != RecomputePolicy::Selective) {
    if (save.is_set) {
      context.diags().Report(save.at, DiagnosticKind::KeyHasNoEffect, "save",
                             fmt::format("`policy` is \"{}\"; \"selective\" reads it", recompute.policy->text()));
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
  WarnOfUnreadResults(context, block);
}

auto CheckRecompute(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const RecomputeSection& recompute = recipe.recompute;
  // Without sound sizes there are no blocks to look at, but a text to read.
  const bool has_sizes = context.IsSound(recipe.model.layers, recipe.model.hidden);
  if (context.IsSound(recompute.layers)) {
    ReportExprErrors(
        context, recompute.layers.at,
        ChooseLayers(recompute.layers->text, has_sizes ? *recipe.model.layers : 0, *recipe.model.hidden).errors);
  }
  if (!context.IsSound(recompute.policy, recompute.save, recipe.model.family)) {
    return;
  }
  // Names and kinds do not depend on sizes.
  const ParameterSpecs block = ModelFamilyOf(*recipe.model.family).block(ModelSizes{});
  CheckWords(context, block);
  if (!context.IsSound(recompute.save)) {
    return;
  }
  if (*recompute.policy == RecomputePolicy::None && recompute.layers->text != "true") {
    context.diags().Report(recompute.layers.at, DiagnosticKind::KeyHasNoEffect, "layers",
                           "`policy` is \"none\", so no block is computed again");
  }
  CheckSave(context, block);
}

}  // namespace shardc
