// shardc presets: the models that a recipe may name in model.preset, with their sizes and what a preset gives.

#include <fmt/ranges.h>

#include <map>
#include <memory>

#include "compiler/base/json_reader.h"
#include "compiler/base/preset_rows.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/text/table.h"
#include "compiler/driver/command.h"
#include "compiler/driver/output.h"
#include "compiler/model/model_family.h"
#include "compiler/recipe/resolved.h"

namespace shardc {

namespace {

struct PresetModel {
  const PresetRow* row = nullptr;
  ModelSizes sizes;
  std::string scheme;
  int64_t parameters = 0;
};

}  // namespace

static auto ModelOf(const PresetRow& row) -> PresetModel {
  SourceSet sources;
  Diagnostics diagnostics(&sources);
  const auto recipe =
      ReadRecipe("preset", fmt::format("model.preset = \"{}\"\n", row.name), {}, sources, diagnostics, LeftOut::Assume);
  CHECK(recipe.ok(), "the preset {} is no recipe:\n{}", row.name, RenderText(diagnostics, {}));
  PresetModel model{
      .row = &row, .sizes = ResolveModel(*recipe), .scheme = recipe->init.scheme->text(), .parameters = 0};
  for (const ParameterSpec& spec : ParametersOf(ModelFamilyOf(*recipe->model.family), model.sizes)) {
    model.parameters += NumElements(spec.shape);
  }
  return model;
}

static auto PresetsText() -> std::string {
  Table table("");
  table.Row({"preset", "parameters", "layers", "hidden", "heads", "kv", "of", "ffn", "vocab", "seq", "longest"});
  std::map<std::string, std::vector<std::string_view>> by_scheme;
  const auto number = [](int64_t n) { return fmt::format("{}", n); };
  for (const PresetRow& row : PresetRows()) {
    const PresetModel model = ModelOf(row);
    const ModelSizes& sizes = model.sizes;
    table.Row({std::string(row.name), Grouped(model.parameters), number(sizes.layers), number(sizes.hidden),
               number(sizes.heads), number(sizes.kv_heads), number(sizes.head_dim), number(sizes.ffn),
               number(sizes.vocab), number(sizes.seq), number(row.longest_seq)});
    by_scheme[model.scheme].push_back(row.name);
  }
  std::string text = table.Text() + "\n";
  for (const auto& [scheme, presets] : by_scheme) {
    text += Wrapped(fmt::format("init.scheme {}: {}", scheme, fmt::join(presets, ", ")), 2);
  }
  return text +
         "\nseq is what the preset sets: the length that the family was trained at first; longest is what the\n"
         "published model takes. Each key may be set beside `preset`; `shardc plan --emit=recipe` writes out\n"
         "what a preset gives.\n";
}

static auto PresetsJson() -> std::string {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PresetRow& row : PresetRows()) {
    nlohmann::ordered_json keys = nlohmann::ordered_json::object();
    for (const PresetKey& key : KeysOf(row)) {
      // TOML and JSON write these values alike.
      keys[key.path] = *ParseJson(key.value, ExitCode::InternalFault);
    }
    const PresetModel model = ModelOf(row);
    list.push_back({{"name", row.name},
                    {"parameters", model.parameters},
                    {"head_dim", model.sizes.head_dim},
                    {"longest_seq", row.longest_seq},
                    {"source", row.source},
                    {"keys", std::move(keys)}});
  }
  return list.dump(2) + "\n";
}

auto DeclarePresets(CommandOptions& options) -> Action {
  const auto format = std::make_shared<std::string>("text");
  options.Choice("--format", *format, {"text", "json"}, "format of the list");
  return [format] { return ExitCodeOf(WriteResult(*format == "json" ? PresetsJson() : PresetsText())); };
}

}  // namespace shardc
