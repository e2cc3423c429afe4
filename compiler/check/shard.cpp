// Rules of [shard]: the predicate holds or not for every block, without a fault; groups of dp are of equal size; the
// guard has memory of its own; the texts that form and name units. Which parameters and units a pattern matches is for
// the passes to judge.

#include <algorithm>
#include <map>

#include "compiler/check/check_context.h"
#include "compiler/expr/layer_choice.h"
#include "compiler/recipe/unit_preset.h"

namespace shardc {

/// The preset that a slip of its word, or another unit, stands for; empty if none does.
static auto UnitPresetMeant(const std::string& text) -> std::string {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return ClosestWord(text, {"block", "torchtitan"});
  }
  const std::string meant =
      InBinaryUnit(fmt::format("{}{}", ClosestWord(text.substr(0, colon), {"blocks", "size"}), text.substr(colon)));
  return ParseUnitPreset(meant) ? meant : "";
}

static auto CheckUnits(CheckContext& context) -> void {
  const ShardSection& shard = context.recipe().shard;
  if (context.IsSound(shard.units) && !ParseUnitPreset(*shard.units)) {
    auto builder =
        context.diags().Build(shard.units.at, DiagnosticKind::UnknownChoice, "units", *shard.units, UnitPresetForms);
    if (const std::string meant = UnitPresetMeant(*shard.units); !meant.empty()) {
      builder.Help(fmt::format("did you mean \"{}\"?", meant));
    }
    builder.Emit();
  }
  std::map<std::string, SourceRange> named;
  for (size_t i = 0; i < shard.unit.size(); ++i) {
    const UnitRule& rule = shard.unit[i];
    const SourceRange at = rule.name.is_set ? rule.name.at : rule.at;
    if (context.IsSound(rule.match) && rule.match->empty()) {
      context.diags().Report(rule.match.at, DiagnosticKind::WrongType, "match", "an empty list", "one pattern or more");
    }
    if (!context.IsSound(rule.name)) {
      continue;
    }
    if (rule.name.is_set && !IsUnitName(*rule.name)) {
      context.diags().Report(at, DiagnosticKind::UnitNameInvalid, *rule.name);
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
      auto builder =
          context.diags().Build(shard.gather_ring.at, DiagnosticKind::RingTooShort, *shard.gather_ring, name, **depth);
      if (depth->is_set) {
        builder.Note(depth->at, fmt::format("`{}` set here", name));
      } else {
        builder.Note(context.recipe().run.device.at,
                     fmt::format("`{}` is {} by default on this device", name, **depth));
      }
      builder.Emit();
    }
  }
}

/// Numbers above 1 and below `dp` that divide it, next to `size`: "2 or 4"; empty if no number does.
static auto NearestGroupSizes(int64_t size, int64_t dp) -> std::string {
  const auto is_one = [dp](int64_t candidate) { return candidate > 1 && candidate < dp && dp % candidate == 0; };
  int64_t below = std::min(size, dp);
  while (below > 1 && !is_one(below)) {
    --below;
  }
  int64_t above = size + 1;
  while (above < dp && !is_one(above)) {
    ++above;
  }
  const bool has_above = above < dp;
  return below > 1 ? fmt::format("{}{}", below, has_above ? fmt::format(" or {}", above) : "")
                   : (has_above ? fmt::format("{}", above) : "");
}

/// False where the word is none.
static auto GathersIntoHost(const CheckContext& context) -> bool {
  const auto& into = context.recipe().shard.gather_into;
  return context.IsSound(into) && *into == GatherInto::Host;
}

static auto CheckReshardSize(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const Located<int64_t>& size = recipe.shard.reshard_size;
  const Located<int64_t>& dp = recipe.mesh.dp;
  if (!size.is_set || !context.IsSound(size, dp)) {
    return;
  }
  const auto report = [&](Diagnostics::Builder builder, const std::string& help) {
    if (dp.is_set) {
      builder.Note(dp.at, fmt::format("`{}` set here", "dp"));
    }
    builder.Help(help).Emit();
    context.MarkFaulty(size);
  };
  if (*size == 1) {
    report(context.diags().Build(size.at, DiagnosticKind::ReshardSizeTrivial, *size, *dp,
                                 "each rank keeps whole units, so no unit is freed after forward"),
           "leave out reshard_size, and set reshard_after_forward = false");
  } else if (*size == *dp) {
    report(context.diags().Build(size.at, DiagnosticKind::ReshardSizeTrivial, *size, *dp,
                                 "one group has all ranks along dp, as without `reshard_size`"),
           "leave out reshard_size");
  } else if (*dp % *size != 0) {
    const std::string nearest = NearestGroupSizes(*size, *dp);
    report(context.diags().Build(size.at, DiagnosticKind::ReshardSizeNotDivisor, *size, *dp),
           nearest.empty() ? "leave out reshard_size" : fmt::format("use reshard_size = {}", nearest));
  }
  if (GathersIntoHost(context)) {
    context.diags()
        .Build(size.at, DiagnosticKind::HostGatherReshardSize, *size)
        .Note(recipe.shard.gather_into.at, fmt::format("`{}` set here", "gather_into"))
        .Emit();
  }
}

/// A size for units that are freed after forward, where none is. `blocks`: what the predicate says of each block.
static auto CheckReshardSizeHasEffect(CheckContext& context, const std::vector<bool>& blocks) -> void {
  const ShardSection& shard = context.recipe().shard;
  const bool by_predicate = shard.reshard_after_forward->text == "true" || std::ranges::count(blocks, true) > 0;
  const bool by_override =
      std::ranges::any_of(shard.override, [](const UnitOverride& override) { return *override.reshard_after_forward; });
  if (shard.reshard_size.is_set && !by_predicate && !by_override && context.IsSound(shard.reshard_size) &&
      context.IsRead("shard.override")) {
    context.diags().Report(shard.reshard_size.at, DiagnosticKind::KeyHasNoEffect, "reshard_size",
                           "`reshard_after_forward` frees no unit after forward");
  }
}

auto CheckShard(CheckContext& context) -> void {
  CheckUnits(context);
  const Recipe& recipe = context.recipe();
  if (GathersIntoHost(context) && *recipe.run.guard) {
    // Formatted, since GCC 12 warns without cause of the bounds of a literal of this length here.
    context.diags()
        .Build(recipe.shard.gather_into.at, DiagnosticKind::GuardedHostGather)
        .Note(recipe.run.guard.at, fmt::format("`{}` set here", "guard"))
        .Emit();
  }
  if (GathersIntoHost(context) && context.IsSound(recipe.run.comm) && *recipe.run.comm == Comm::GlooFlat) {
    context.diags()
        .Build(recipe.shard.gather_into.at, DiagnosticKind::HostGatherFlat)
        .Note(recipe.run.comm.at, fmt::format("`{}` set here", "comm"))
        .Emit();
  }
  for (const auto& [name, axis] : {std::pair("replicate", &recipe.mesh.replicate), std::pair("tp", &recipe.mesh.tp)}) {
    if (GathersIntoHost(context) && context.IsSound(*axis) && **axis > 1) {
      context.diags()
          .Build(recipe.shard.gather_into.at, DiagnosticKind::HostGatherMesh, name, **axis)
          .Note(axis->at, fmt::format("`{}` set here", name))
          .Emit();
    }
  }
  CheckRing(context);
  CheckReshardSize(context);
  const Located<Condition>& reshard = recipe.shard.reshard_after_forward;
  if (!context.IsSound(reshard)) {
    return;
  }
  const ExprResult<Expr> expr = ParseExpr(reshard->text, ExprKind::Predicate);
  if (!expr.ok()) {
    ReportExprErrors(context, reshard.at, expr.errors);
    return;
  }
  if (!context.IsSound(recipe.model.layers, recipe.model.hidden)) {
    return;
  }
  const auto blocks = LayersWhere(expr.value, *recipe.model.layers, *recipe.model.hidden);
  ReportExprErrors(context, reshard.at, blocks.errors);
  if (blocks.ok()) {
    CheckReshardSizeHasEffect(context, blocks.value);
  }
}

}  // namespace shardc
