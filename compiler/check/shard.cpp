// Rules of [shard]: the predicate holds or not for every block, without a fault; the guard has memory of its own.

#include "compiler/check/check_context.h"

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
  ExprVariables variables{{"layer", 0.0},
                          {"layers", static_cast<double>(*recipe.model.layers)},
                          {"hidden", static_cast<double>(*recipe.model.hidden)}};
  double& layer_variable = variables.at("layer");
  for (int64_t layer = 0; layer < *recipe.model.layers; ++layer) {
    layer_variable = static_cast<double>(layer);
    if (const ExprResult<bool> result = EvaluateBool(expr.value, variables); !result.ok()) {
      ReportExprErrors(context, reshard.at, result.errors, fmt::format(" at layer {}", layer));
      return;
    }
  }
}

}  // namespace shardc
