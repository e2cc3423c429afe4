// 1. make a recipe of what names parameters and units, with sound values for all else, and build its plan
// 2. if its init rules or groups have faults, build it once more without them: units come after them
// 3. report what the two say, but for what follows from tables that could not be read

#include "compiler/passes/check_names.h"

#include <algorithm>
#include <set>

#include "compiler/check/check_recipe.h"
#include "compiler/expr/expr.h"
#include "compiler/recipe/model_sizes.h"
#include "compiler/recipe/unit_preset.h"

namespace shardc {

template <class T>
static auto SetTo(Located<T>& leaf, T value) -> void {
  leaf = Located<T>{.value = std::move(value), .at = {}, .is_set = true};
}

/// Have all units names of their own, so that overrides can be matched with them?
static auto HasSoundUnits(const Recipe& recipe) -> bool {
  const ShardSection& shard = recipe.shard;
  std::set<std::string> names;
  bool is_sound = shard.units.is_known && ParseUnitPreset(*shard.units) && !recipe.unread_lists.contains("shard.unit");
  for (size_t i = 0; i < shard.unit.size(); ++i) {
    const UnitRule& rule = shard.unit[i];
    is_sound = is_sound && rule.name.is_known && rule.match.is_known && (!rule.name.is_set || IsUnitName(*rule.name)) &&
               names.insert(UnitNameOf(shard, i)).second;
  }
  return is_sound;
}

static auto TakeUnits(const Recipe& recipe, Recipe& names) -> void {
  if (!HasSoundUnits(recipe)) {
    return;
  }
  names.shard.units = recipe.shard.units;
  names.shard.unit = recipe.shard.unit;
  for (const UnitOverride& override : recipe.shard.override) {
    if (override.match.is_known && override.reshard_after_forward.is_known) {
      names.shard.override.push_back(override);
    }
  }
  for (const PrecisionOverride& override : recipe.precision.override) {
    if (override.match.is_known) {
      names.precision.override.emplace_back();
      names.precision.override.back().match = override.match;
      SetTo(names.precision.override.back().compute, OneOf(ComputePrecision::Fp32));
    }
  }
}

static auto TakeInit(const Recipe& recipe, Recipe& names) -> void {
  if (recipe.init.scheme.is_known && recipe.init.scheme->is_accepted()) {
    names.init.scheme = recipe.init.scheme;
  }
  names.init.at = recipe.init.at;
  for (InitRule rule : recipe.init.rule) {
    if (!rule.match.is_known) {
      continue;
    }
    // What is wrong with the text of a rule has been said.
    if (!rule.value.is_known || !ParseExpr(rule.value->text, ExprKind::Rule).ok()) {
      // Formatted, since GCC 12 warns without cause of the bounds of a literal here.
      rule.value.value.text = fmt::format("{}", 0);
    }
    names.init.rule.push_back(std::move(rule));
  }
}

/// What names parameters and units; sound values else.
static auto OnlyNames(const Recipe& recipe) -> Recipe {
  Recipe names;
  names.path = recipe.path;
  const Recipe defaults;
  names.model = recipe.model;
  names.model.rope_frequency = defaults.model.rope_frequency;
  names.model.rope_theta = defaults.model.rope_theta;
  names.model.norm_eps = defaults.model.norm_eps;
  for (const LossHead& head : recipe.loss.head) {
    if (head.name.is_known) {
      names.loss.head.push_back(head);
      SetTo(names.loss.head.back().weight, 1.0);
    }
  }
  TakeInit(recipe, names);
  TakeUnits(recipe, names);
  SetTo(names.optimizer.lr, Formula{.text = "0"});
  for (const GroupRule& group : recipe.optimizer.group) {
    if (group.match.is_known) {
      names.optimizer.group.emplace_back();
      names.optimizer.group.back().match = group.match;
    }
  }
  if (recipe.optimizer.frozen.is_known) {
    names.optimizer.frozen = recipe.optimizer.frozen;
  }
  SetTo(names.data.tokens, std::vector<std::string>{"tokens.bin"});
  SetTo(names.batch.micro, int64_t{1});
  SetTo(names.train.steps, int64_t{1});
  return names;
}

/// Is it said only because something else could not be read?
static auto FollowsFromOthers(const Recipe& recipe, const Diagnostic& diagnostic) -> bool {
  // Without the seed's tensors nothing can be said of what is loaded, or reads them.
  const bool has_seed = recipe.start.first->seed.is_set || !recipe.start.first.is_known;
  if (diagnostic.kind != DiagnosticKind::InitRuleMissing) {
    return has_seed && diagnostic.kind == DiagnosticKind::InitValueDomain;
  }
  const InitSection& init = recipe.init;
  const auto has_match = [](const InitRule& rule) { return rule.match.is_known; };
  const bool is_scheme_sound = init.scheme.is_known && (!init.scheme.is_set || init.scheme->is_accepted());
  return !is_scheme_sound || recipe.unread_lists.contains("init.rule") || !std::ranges::all_of(init.rule, has_match) ||
         (init.rule.empty() && !init.scheme.is_set) || has_seed;
}

static auto HasHeadNames(const Recipe& recipe) -> bool {
  std::set<std::string> names{std::string(OwnHead)};
  return std::ranges::all_of(recipe.loss.head, [&](const LossHead& head) { return names.insert(*head.name).second; });
}

auto ReportNameFaults(const Recipe& recipe, Diagnostics& diags) -> void {
  if (!HasHeadNames(recipe)) {
    return;
  }
  const auto report = [&](const Recipe& names) {
    Diagnostics found(&diags.sources());
    static_cast<void>(Compile(names, {.stop_after = PassKind::Build}, found));
    for (const Diagnostic& diagnostic : found.all()) {
      const bool is_told = std::ranges::any_of(diags.all(), [&](const Diagnostic& told) {
        return told.kind == diagnostic.kind && told.at == diagnostic.at && told.text == diagnostic.text;
      });
      if (diagnostic.severity == Severity::Error && !is_told && !FollowsFromOthers(recipe, diagnostic)) {
        diags.Add(diagnostic);
      }
    }
    return found.has_errors();
  };
  Recipe names = OnlyNames(recipe);
  if (!report(names)) {
    return;
  }
  names.init = {};
  InitRule all;
  SetTo(all.match, std::string("*"));
  SetTo(all.value, Formula{.text = "0"});
  names.init.rule.push_back(all);
  names.optimizer.group.clear();
  names.optimizer.frozen = {};
  report(names);
}

auto ReadAndCheck(const std::string& path, std::string text, const std::vector<std::string>& overrides,
                  SourceSet& sources, Diagnostics& diags, const ReadOptions& options) -> ErrorOr<Recipe> {
  const int num_errors = diags.num_errors();
  auto recipe = ReadSoundParts(path, std::move(text), overrides, sources, diags, options.left_out);
  if (!recipe) {
    return Rejected();
  }
  if (options.num_hosts > 1) {
    SetHosts(options.num_hosts, *recipe, sources, diags);
  }
  const bool has_model = CheckRecipe(*recipe, diags, options.files);
  if (diags.num_errors() == num_errors) {
    return *std::move(recipe);
  }
  if (has_model) {
    ReportNameFaults(*recipe, diags);
  }
  return Rejected();
}

}  // namespace shardc
