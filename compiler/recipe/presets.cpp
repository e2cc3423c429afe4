#include "compiler/recipe/presets.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "compiler/base/preset_rows.h"

namespace shardc {

static auto AllNames() -> std::vector<std::string_view> {
  std::vector<std::string_view> names;
  for (const PresetRow& row : PresetRows()) {
    names.push_back(row.name);
  }
  return names;
}

/// A name of Hugging Face as presets are spelled, without what says that it is tuned: llama-3-8b for
/// meta-llama/Meta-Llama-3-8B-Instruct.
static auto WithoutDecoration(std::string_view name) -> std::string {
  std::string plain(name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1));
  std::ranges::transform(plain, plain.begin(), [](unsigned char letter) { return std::tolower(letter); });
  if (plain.starts_with("meta-")) {
    plain.erase(0, std::string_view("meta-").size());
  }
  for (const std::string_view end : {"-instruct", "-base", "-chat", "-hf"}) {
    if (plain.ends_with(end)) {
      plain.erase(plain.size() - end.size());
    }
  }
  return plain;
}

auto NearestPresets(std::string_view asked) -> std::vector<std::string_view> {
  constexpr size_t Most = 3;
  const std::string plain = WithoutDecoration(asked);
  const std::string_view name = plain;
  std::vector<std::string_view> names = AllNames();
  std::vector<std::string_view> nearest;
  for (std::string closest = ClosestWord(name, names); !closest.empty() && nearest.size() < Most;
       closest = ClosestWord(name, names)) {
    const auto found = std::ranges::find(names, closest);
    nearest.push_back(*found);
    names.erase(found);
  }
  const std::string_view letters = name.substr(0, name.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
  for (const std::string_view other : nearest.empty() && letters.size() > 2 ? AllNames() : decltype(names){}) {
    if (other.starts_with(letters)) {
      nearest.push_back(other);
    }
  }
  return nearest;
}

auto HelpOnPresets(std::string_view name) -> std::string {
  constexpr size_t Most = 6;
  const std::vector<std::string_view> nearest = NearestPresets(name);
  if (nearest.size() > Most) {
    return fmt::format("none is near; `shardc presets` lists all, {} of this family", nearest.size());
  }
  return nearest.empty() ? std::string("`shardc presets` lists the presets")
                         : fmt::format("nearest: \"{}\"; `shardc presets` lists all", fmt::join(nearest, "\", \""));
}

static auto ReportUnknownPreset(const Located<OneOf<ModelPreset>>& preset, Diagnostics& diagnostics) -> void {
  diagnostics.Build(preset.at, DiagnosticKind::UnknownPreset, preset->text())
      .Help(HelpOnPresets(preset->text()))
      .Emit();
}

auto TextOfPreset(const Recipe& recipe, Diagnostics& diagnostics) -> StandInText {
  const Located<OneOf<ModelPreset>>& preset = recipe.model.preset;
  if (!preset.is_set) {
    return {};
  }
  if (const PresetRow* row = PresetNamed(preset->text())) {
    return {.name = fmt::format("preset {}", row->name), .lines = std::string(row->lines)};
  }
  // A value that is no text has been reported by its type.
  if (std::ranges::none_of(diagnostics.all(), [&](const Diagnostic& other) { return other.at == preset.at; })) {
    ReportUnknownPreset(preset, diagnostics);
  }
  return {};
}

/// Does the recipe say what the row would, in one way or another?
static auto IsGiven(const Recipe& recipe, const AssumedRow& row) -> bool {
  if (row.section == "data") {
    const OneOf<Synthetic>& synthetic = *recipe.data.synthetic;
    return recipe.data.tokens.is_set || !recipe.data.source.empty() ||
           !(synthetic.is_accepted() && synthetic == Synthetic::None);
  }
  if (row.section == "batch") {
    return recipe.batch.micro.is_set || recipe.batch.global.is_set;
  }
  CHECK(row.section == "optimizer" || row.section == "train", "section {}", row.section);
  return row.section == "optimizer" ? recipe.optimizer.lr.is_set : recipe.train.steps.is_set;
}

auto TextOfAssumed(const Recipe& recipe) -> StandInText {
  StandInText text{.name = "assumed", .lines = ""};
  for (const AssumedRow& row : recipe.model.preset.is_set ? AssumedRows() : std::span<const AssumedRow>()) {
    if (!IsGiven(recipe, row)) {
      text.lines += fmt::format("[{}]\n{} = {}\n", row.section, row.key, row.value);
    }
  }
  return text;
}

auto AssumedLines(const Recipe& recipe) -> std::vector<std::string> {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view section, const auto& leaf) {
    for (const AssumedRow& row : AssumedRows()) {
      if (row.section == section && recipe.IsAssumed(leaf.at)) {
        lines.push_back(fmt::format("{}.{} = {} ({})", row.section, row.key, row.value, row.why));
      }
    }
  };
  add("optimizer", recipe.optimizer.lr);
  add("data", recipe.data.tokens);
  add("batch", recipe.batch.micro);
  add("train", recipe.train.steps);
  return lines;
}

}  // namespace shardc
