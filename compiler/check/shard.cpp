// Rules of [shard]: the predicate holds or not for every block, without a fault; the guard has memory of its own.

#include "compiler/check/check_context.h"
#include "compiler/expr/layer_choice.h"

namespace shardc {

auto CheckShard(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  if (*recipe.shard.gather_into == "host" && *recipe.run.guard) {
    // Formatted, since GCC 12 warns without cause of the bounds of a literal of this length here.
    context.diags()
        .Build(recipe.shard.gather_into.at, DiagnosticKind::GuardedHostGather)
        .Note(recipe.run.guard.at, fmt::format("`{}` set here", "guard"))
        .Emit();
  }
  for (const auto& [name, axis] : {std::pair("replicate", &recipe.mesh.replicate), std::pair("tp", &recipe.mesh.tp)}) {
    if (*recipe.shard.gather_into == "host" && context.IsSound(*axis) && **axis > 1) {
      context.diags()
          .Build(recipe.shard.gather_into.at, DiagnosticKind::HostGatherMesh, name, **axis)
          .Note(axis->at, fmt::format("`{}` set here", name))
          .Emit();
    }
  }
  const Located<Condition>& reshard = recipe.shard.reshard_after_forward;
  const ExprResult<Expr> expr = ParseExpr(reshard->text, ExprKind::Predicate);
  if (!expr.ok()) {
    ReportExprErrors(context, reshard.at, expr.errors);
    return;
  }
  if (!context.IsSound(recipe.model.layers, recipe.model.hidden)) {
    return;
  }
  ReportExprErrors(context, reshard.at, LayersWhere(expr.value, *recipe.model.layers, *recipe.model.hidden).errors);
}

}  // namespace shardc
