// Rules of [shard]: the predicate holds or not for every block, without a fault; the guard has memory of its own; the
// texts that form and name units. Which parameters and units a pattern matches is for the passes to judge.

#include <map>

#include "compiler/check/check_context.h"
#include "compiler/expr/layer_choice.h"
#include "compiler/recipe/unit_preset.h"

namespace shardc {

static auto CheckUnits(CheckContext& context) -> void {
  const ShardSection& shard = context.recipe().shard;
  if (!ParseUnitPreset(*shard.units)) {
    auto builder =
        context.diags().Build(shard.units.at, DiagnosticKind::UnknownChoice, "units", *shard.units, UnitPresetForms);
    if (const std::string closest = ClosestWord(*shard.units, {"block", "torchtitan"}); !closest.empty()) {
      builder.Help(fmt::format("did you mean \"{}\"?", closest));
    }
    builder.Emit();
  }
  std::map<std::string, SourceRange> named;
  for (size_t i = 0; i < shard.unit.size(); ++i) {
    const UnitRule& rule = shard.unit[i];
    const SourceRange at = rule.name.is_set ? rule.name.at : rule.at;
    if (rule.match->empty()) {
      context.diags()
          .Build(rule.match.at, DiagnosticKind::WrongType, "match", "an empty list", "one pattern or more")
          .Emit();
    }
    if (rule.name.is_set && !IsUnitName(*rule.name)) {
      context.diags().Build(at, DiagnosticKind::UnitNameInvalid, *rule.name).Emit();
    } else if (const auto [other, fresh] = named.try_emplace(UnitNameOf(shard, i), at); !fresh) {
      context.diags()
          .Build(at, DiagnosticKind::UnitNameDuplicate, other->first)
          .Note(other->second, "the other is here")
          .Emit();
    }
  }
}

static auto CheckRing(CheckContext& context) -> void {
  const ShardSection& shard = context.recipe().shard;
  if (!shard.gather_ring.is_set) {
    return;
  }
  for (const auto& [name, depth] : {std::pair("prefetch_forward", &shard.prefetch_forward),
                                    std::pair("prefetch_backward", &shard.prefetch_backward)}) {
    if (context.IsSound(shard.gather_ring, *depth) && *shard.gather_ring <= **depth) {
      context.diags()
          .Build(shard.gather_ring.at, DiagnosticKind::RingTooShort, *shard.gather_ring, name, **depth)
          .Note(depth->at, fmt::format("`{}` set here", name))
          .Emit();
    }
  }
}

auto CheckShard(CheckContext& context) -> void {
  CheckUnits(context);
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
  CheckRing(context);
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
