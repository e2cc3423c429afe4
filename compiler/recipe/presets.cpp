#include "compiler/recipe/presets.h"

#include <algorithm>

#include "compiler/base/mapped.h"
#include "compiler/recipe/other_tools.h"

namespace shardc {

auto PresetLike(std::string_view word) -> const PresetRow* {
  const auto base = [](std::string_view name) { return FoldedWord(name.substr(name.rfind('/') + 1)); };
  const std::string wanted = base(word);
  const auto is_like = [&](const PresetRow& row) {
    return FoldedWord(row.name).starts_with(wanted) || base(row.source).starts_with(wanted);
  };
  const auto row = std::ranges::find_if(PresetRows(), is_like);
  return wanted.empty() || row == PresetRows().end() ? nullptr : &*row;
}

auto HelpOnPresets(std::string_view name) -> std::string {
  const auto names = Mapped<std::string_view>(PresetRows(), &PresetRow::name);
  std::string closest = ClosestWord(name, names);
  if (const PresetRow* const like = PresetLike(name); closest.empty() && like != nullptr) {
    closest = like->name;
  }
  return closest.empty() ? "`shardc presets` lists all; for a model of Hugging Face: shardc new FILE --from DIR"
                         : fmt::format("did you mean \"{}\"? `shardc presets` lists all", closest);
}

auto TextOfPreset(const Recipe& recipe, Diagnostics& diagnostics) -> StandInText {
  const Located<OneOf<ModelPreset>>& preset = recipe.model.preset;
  if (!preset.is_set || !preset.is_known) {
    return {};
  }
  if (const PresetRow* row = PresetNamed(preset->text())) {
    return {.name = fmt::format("preset {}", row->name), .lines = std::string(row->lines)};
  }
  diagnostics.Build(preset.at, DiagnosticKind::UnknownPreset, preset->text())
      .Help(HelpOnPresets(preset->text()))
      .Emit();
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
  const bool may_have_preset = recipe.model.preset.is_set || !recipe.model.preset.is_known;
  for (const AssumedRow& row : may_have_preset ? AssumedRows() : std::span<const AssumedRow>()) {
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
