// Recipes whose plan would have more ops or scalars than plans have. Ops are counted from below: each
// block and each chunk of the loss makes at least so many, whatever else the recipe says, so what is refused here could
// not have been made. What comes close is refused once it is made (compiler/ops/plan_limits.h).

#include "compiler/base/plan_limits.h"
#include "compiler/check/check_context.h"
#include "compiler/check/check_recipe.h"
#include "compiler/model/estimate.h"

namespace shardc {

static auto Refuse(CheckContext& context, const SourceRange& at, const std::string& what, int64_t most) -> void {
  context.diags().Report(at, DiagnosticKind::PlanTooLarge, what, most);
}

/// From below, of a chunk of one head: logits, their loss, and the same backward.
constexpr double OpsOfChunk = 6;

static auto CheckOps(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const auto heads = static_cast<double>(1 + recipe.loss.head.size());
  const double of_block = LeastOpsOfBlock(ModelFamilyOf(*recipe.model.family), recipe.optimizer.frozen->empty());
  const double of_blocks = of_block * static_cast<double>(*recipe.model.layers);
  const double of_chunks = OpsOfChunk * static_cast<double>(*recipe.loss.chunks) * heads;
  const auto most = static_cast<double>(MostOps);
  if (of_blocks > most) {
    Refuse(context, recipe.model.layers.at,
           fmt::format("`layers` {} makes {:.0f} ops or more", *recipe.model.layers, of_blocks), MostOps);
    context.MarkFaulty(recipe.model.layers);
  } else if (of_blocks + of_chunks > most) {
    Refuse(context, recipe.loss.chunks.at.valid() ? recipe.loss.chunks.at : recipe.loss.at,
           fmt::format("`chunks` {} of {:.0f} head{}, and `layers` {}, make {:.0f} ops or more", *recipe.loss.chunks,
                       heads, heads == 1 ? "" : "s", *recipe.model.layers, of_blocks + of_chunks),
           MostOps);
  }
}

auto CheckPlanSize(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  // A size that is wrong would be told of twice.
  if (!HasSoundModel(context) || !context.IsSound(recipe.loss.chunks, recipe.optimizer.frozen)) {
    return;
  }
  // Each head has a count and a sum.
  if (const auto scalars = static_cast<int64_t>(2 * recipe.loss.head.size()); scalars > MostScalars) {
    Refuse(context, recipe.loss.at,
           fmt::format("{} tables [[loss.head]] make {} scalars or more", recipe.loss.head.size(), scalars),
           MostScalars);
  }
  CheckOps(context);
}

}  // namespace shardc
