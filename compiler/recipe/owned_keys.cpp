#include "compiler/recipe/owned_keys.h"

#include <algorithm>

#include "compiler/base/devices.h"
#include "compiler/base/family_keys.h"
#include "compiler/base/mapped.h"
#include "compiler/base/text/joined.h"
#include "compiler/expr/expr.h"
#include "compiler/expr/init_schemes.h"

namespace shardc {

static auto MakeOwnedKeys() -> std::vector<OwnedKey> {
  std::vector<OwnedKey> rows{
#define SETTING(Name, key) {"optimizer", #key, ToText(Optimizer::Name)},
#include "schemas/optimizers.def"
  };
  for (size_t i = 0; i < CountOf<Family>(); ++i) {
    const auto family = static_cast<Family>(i);
    for (const std::string_view key : KeysOf(family)) {
      rows.push_back({"model", key, ToText(family)});
    }
  }
  return rows;
}

auto OwnedKeys() -> const std::vector<OwnedKey>& {
  static const std::vector<OwnedKey> rows = MakeOwnedKeys();
  return rows;
}

auto OwnersOf(std::string_view section, std::string_view key, std::span<const OwnedKey> rows)
    -> std::vector<std::string_view> {
  std::vector<std::string_view> owners;
  for (const OwnedKey& row : rows) {
    if (row.section == section && row.key == key) {
      owners.push_back(row.word);
    }
  }
  return owners;
}

/// The word that chooses among the owners of the section's keys; empty where it is not known, or no such owner.
static auto ChoiceOf(const Recipe& recipe, std::string_view section) -> std::string_view {
  const auto accepted = [](const auto& leaf) {
    return leaf.is_known && leaf->is_accepted() ? std::string_view(leaf->text()) : "";
  };
  return section == "optimizer" ? accepted(recipe.optimizer.name)
         : section == "model"   ? accepted(recipe.model.family)
                                : "";
}

auto IsLacked(const Recipe& recipe, std::string_view section, std::string_view key, std::span<const OwnedKey> rows)
    -> bool {
  const std::string_view choice = ChoiceOf(recipe, section);
  const std::vector<std::string_view> owners = OwnersOf(section, key, rows);
  return !choice.empty() && !owners.empty() && std::ranges::find(owners, choice) == owners.end();
}

auto JudgesSpikes(const Recipe& recipe) -> bool { return recipe.train.on_spike.is_set; }

auto SkipsUpdates(const Recipe& recipe) -> bool {
  const Located<OneOf<OnSpike>>& on_spike = recipe.train.on_spike;
  const OneOf<OnNonfinite>& on_nonfinite = *recipe.train.on_nonfinite;
  return (on_spike.is_set && on_spike->is_accepted() && *on_spike == OnSpike::Skip) ||
         (on_nonfinite.is_accepted() && on_nonfinite == OnNonfinite::Skip);
}

/// Returns true for a key of [train] that acts beside another key alone, which the recipe does not set so.
static auto HasNoEffect(const Recipe& recipe, std::string_view section, std::string_view key) -> bool {
  return section == "train" && (((key == "spike_window" || key == "spike_sigma") && !JudgesSpikes(recipe)) ||
                                (key == "max_skipped" && !SkipsUpdates(recipe)));
}

auto UsesStd(const Recipe& recipe) -> bool {
  const auto uses = [](std::string_view text) {
    const ExprResult<Expr> expr = ParseExpr(text, ExprKind::Rule);
    return !expr.ok() || UsesVariable(expr.value, "init_std");
  };
  const InitSection& init = recipe.init;
  return std::ranges::any_of(init.rule, [&](const InitRule& rule) { return uses(rule.value->text); }) ||
         (init.scheme.is_set && init.scheme->is_accepted() &&
          std::ranges::any_of(InitSchemeNamed(*init.scheme).rules,
                              [&](const InitSchemeRule& rule) { return uses(rule.value); }));
}

auto IsIdle(const Recipe& recipe, std::string_view section, std::string_view key) -> bool {
  const DataSection& data = recipe.data;
  const bool makes_tokens = data.synthetic->is_accepted() && *data.synthetic != Synthetic::None;
  const bool is_sequential = data.order->is_accepted() && *data.order == SampleOrder::Sequential;
  return HasNoEffect(recipe, section, key) || (section == "init" && key == "std" && !UsesStd(recipe)) ||
         (section == "data" &&
          (makes_tokens ? key == "format" || key == "order" || key == "scan" : key == "seed" && is_sequential));
}

static auto OverlapsStreams(const Recipe& recipe) -> bool {
  const OneOf<Device>& device = *recipe.run.device;
  return device.is_accepted() && FactsOf(device).overlaps_streams;
}

/// Says if TakeDeviceDefaults has put in a value other than 0 for the key.
static auto HasDeviceDefault(const Recipe& recipe, const KeyInfo& key) -> bool {
  return OverlapsStreams(recipe) && key.section == "shard" &&
         (key.name == "prefetch_forward" || key.name == "prefetch_backward" || key.name == "reduce_ring");
}

auto TakesDefault(const Recipe& recipe, const KeyInfo& key) -> bool {
  return (key.has_default() || HasDeviceDefault(recipe, key)) && !IsLacked(recipe, key.section, key.name) &&
         !HasNoEffect(recipe, key.section, key.name);
}

auto QuotedWords(std::span<const std::string_view> words) -> std::string {
  const auto quoted =
      Mapped<std::string>(words, [](const std::string_view word) { return fmt::format("\"{}\"", word); });
  return JoinedByAnd(quoted);
}

template <class T>
static auto TakeDefault(Located<T>& leaf, const T& value) -> void {
  leaf.value = leaf.is_set ? leaf.value : value;
}

auto TakeFamilyDefaults(Recipe& recipe) -> void {
  const OneOf<Family>& family = *recipe.model.family;
#define FAMILY_DEFAULT(Name, key, default_)             \
  if (family.is_accepted() && family == Family::Name) { \
    TakeDefault(recipe.model.key, {default_});          \
  }
#include "schemas/families.def"
}

auto TakeDeviceDefaults(Recipe& recipe) -> void {
  const bool overlaps = OverlapsStreams(recipe);
  TakeDefault(recipe.shard.prefetch_forward, int64_t{overlaps ? 1 : 0});
  TakeDefault(recipe.shard.prefetch_backward, int64_t{overlaps ? 1 : 0});
  TakeDefault(recipe.shard.reduce_ring, int64_t{overlaps ? 2 : 0});
}

}  // namespace shardc
