// The texts that a recipe is made of, in their order: the user's file without the keys of --unset, each --set over it,
// then the preset and the assumed values for the keys that these leave out. Every key that no text gives takes its
// default or is an error.

#include <algorithm>

#include "compiler/recipe/override.h"
#include "compiler/recipe/owned_keys.h"
#include "compiler/recipe/presets.h"
#include "compiler/recipe/text_guard.h"
#include "compiler/recipe/tree_reader.h"

namespace shardc {

static constexpr size_t MaxOverrides = 1000;

/// Puts a text of ours where the user's texts set nothing.
static auto FillIn(StandInText text, bool is_assumed, Recipe& recipe, SourceSet& sources, Diagnostics& diagnostics)
    -> void {
  if (text.lines.empty()) {
    return;
  }
  const int16_t source = sources.Add(text.name, std::move(text.lines));
  recipe.stand_ins.push_back({source, std::move(text.name), is_assumed});
  TomlFault fault;
  const auto root = ParseToml(sources, source, fault);
  CHECK(root.has_value(), "{}: {}", recipe.stand_ins.back().name, fault.message);
  TreeReader(recipe, diagnostics, true).ReadRoot(*root);
}

/// Parses the text of a recipe. The first fault of its syntax ends the reading: TOML has no place to go on from.
static auto ParseRecipe(const SourceSet& sources, int16_t source, Diagnostics& diagnostics) -> std::optional<TomlNode> {
  if (!CheckText(sources, source, diagnostics)) {
    return std::nullopt;
  }
  TomlFault fault;
  auto root = ParseToml(sources, source, fault);
  if (!root) {
    diagnostics.Build(fault.at, DiagnosticKind::TomlSyntax, fmt::format("the text is not TOML: {}", fault.message))
        .Help(fault.message.starts_with("inline table")
                  ? "TOML 1.0 is read: an inline table is on one line, without a comma before its }"
                  : "a line is a header such as [model], or key = value; text stands in quotes")
        .Emit();
  }
  return root;
}

auto ReadSoundParts(const std::string& path, std::string text, const std::vector<std::string>& overrides,
                    SourceSet& sources, Diagnostics& diagnostics, LeftOut left_out) -> Recipe {
  Recipe recipe;
  recipe.path = path;
  recipe.overrides = overrides;
  const int16_t file = sources.Add(path, std::move(text));
  std::vector<int16_t> sets;
  std::vector<int16_t> unsets;
  for (size_t i = 0; i < std::min(overrides.size(), MaxOverrides); ++i) {
    if (IsUnset(overrides[i])) {
      unsets.push_back(sources.Add("--unset", overrides[i].substr(UnsetPrefix.size())));
    } else {
      sets.push_back(sources.Add("--set", overrides[i]));
    }
  }
  if (overrides.size() > MaxOverrides) {
    diagnostics.Report({}, DiagnosticKind::BadOverride,
                       fmt::format("{} times --set or --unset; the limit is {}", overrides.size(), MaxOverrides));
  }

  TreeReader reader(recipe, diagnostics);
  if (auto root = ParseRecipe(sources, file, diagnostics)) {
    for (const int16_t source : unsets) {
      TakeOut(sources, source, *root, diagnostics);
    }
    reader.ReadRoot(*root);
  } else {
    reader.ExcuseAll();
  }
  for (const int16_t source : sets) {
    if (const auto root = ParseOverride(sources, source, diagnostics)) {
      reader.ReadRoot(*root);
    }
  }
  FillIn(TextOfPreset(recipe, diagnostics), false, recipe, sources, diagnostics);
  if (left_out == LeftOut::Assume) {
    FillIn(TextOfAssumed(recipe), true, recipe, sources, diagnostics);
  }
  const Located<OneOf<ModelPreset>>& preset = recipe.model.preset;
  if (!preset.is_known || (preset.is_set && !preset->is_accepted())) {
    for (const std::string_view filled : {"model", "init"}) {
      reader.Excuse(filled);
    }
  }
  reader.ReportMissing({file, 0, 0, 1});
  TakeFamilyDefaults(recipe);
  TakeDeviceDefaults(recipe);
  return recipe;
}

auto SetHosts(int64_t num_hosts, Recipe& recipe, SourceSet& sources, Diagnostics& diagnostics) -> void {
  CHECK(num_hosts >= 1 && num_hosts < int64_t{1} << 31, "{} hosts", num_hosts);
  // The axes may hold anything yet: their product may be too large.
  int64_t rest = 1;
  for (const int64_t size : {*recipe.mesh.replicate, *recipe.mesh.dp, *recipe.mesh.tp}) {
    rest = rest * (size % num_hosts) % num_hosts;
  }
  if (recipe.mesh.hosts.is_set || rest != 0) {
    return;
  }
  recipe.overrides.push_back(fmt::format("mesh.hosts={}", num_hosts));
  const auto root = ParseOverride(sources, sources.Add("--set", recipe.overrides.back()), diagnostics);
  CHECK(root.has_value(), "{}", recipe.overrides.back());
  TreeReader(recipe, diagnostics).ReadRoot(*root);
}

auto ReadRecipe(const std::string& path, std::string text, const std::vector<std::string>& overrides,
                SourceSet& sources, Diagnostics& diagnostics, LeftOut left_out) -> ErrorOr<Recipe> {
  const int num_errors_before = diagnostics.num_errors();
  Recipe recipe = ReadSoundParts(path, std::move(text), overrides, sources, diagnostics, left_out);
  if (diagnostics.num_errors() > num_errors_before) {
    return Error{ExitCode::RecipeRejected, ""};
  }
  return recipe;
}

}  // namespace shardc
