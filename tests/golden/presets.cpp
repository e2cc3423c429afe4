// Presets of models against what was published of them: the numbers of parameters, and plans equal to those of recipes
// that have the sizes written out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/base/preset_rows.h"
#include "compiler/cost/preset_use.h"
#include "compiler/model/model_family.h"
#include "compiler/plan/op_place.h"
#include "compiler/plan/text.h"
#include "compiler/recipe/resolved.h"
#include "compiler/report/report.h"
#include "tests/golden/golden_case.h"

namespace shardc {
namespace {

using testing::HasSubstr;

struct Published {
  std::string_view preset;
  int64_t parameters;
};

// Source: the totals in model.safetensors.index.json of the models on Hugging Face, in bf16 two bytes each; those of
// Qwen as transformers 5.23 counts them; of llama-debug, what torchtitan prints at the start of its debugmodel.
constexpr auto PublishedNumbers = std::to_array<Published>({
    {"llama2-7b", 6'738'415'616},     {"llama2-13b", 13'015'864'320},     {"llama2-70b", 68'976'648'192},
    {"llama3-8b", 8'030'261'248},     {"llama3-70b", 70'553'706'496},     {"llama3.1-8b", 8'030'261'248},
    {"llama3.1-70b", 70'553'706'496}, {"llama3.1-405b", 405'853'388'800}, {"llama3.2-1b", 1'235'814'400},
    {"llama3.2-3b", 3'212'749'824},   {"llama-debug", 6'163'712},         {"qwen2.5-0.5b", 494'032'768},
    {"qwen2.5-1.5b", 1'543'714'304},  {"qwen2.5-3b", 3'085'938'688},      {"qwen2.5-7b", 7'615'616'512},
    {"qwen2.5-14b", 14'770'033'664},  {"qwen2.5-32b", 32'763'876'352},    {"qwen2.5-72b", 72'706'203'648},
    {"qwen3-0.6b", 596'049'920},      {"qwen3-1.7b", 1'720'574'976},      {"qwen3-4b", 4'022'468'096},
    {"qwen3-8b", 8'190'735'360},      {"qwen3-14b", 14'768'307'200},      {"qwen3-32b", 32'762'123'264},
});

auto RecipeOf(std::string_view preset, SourceSet& sources) -> Recipe {
  Diagnostics diagnostics(&sources);
  auto recipe =
      ReadRecipe("r.toml", fmt::format("model.preset = \"{}\"\n", preset), {}, sources, diagnostics, LeftOut::Assume);
  CHECK(recipe.ok(), "{}", RenderText(diagnostics, {}));
  return *std::move(recipe);
}

TEST(Presets, HaveThePublishedNumbersOfParameters) {
  std::set<std::string_view> compared;
  for (const Published& row : PublishedNumbers) {
    SourceSet sources;
    const Recipe recipe = RecipeOf(row.preset, sources);
    int64_t parameters = 0;
    for (const ParameterSpec& spec : ParametersOf(ModelFamilyOf(*recipe.model.family), ResolveModel(recipe))) {
      parameters += NumElements(spec.shape);
    }
    EXPECT_EQ(parameters, row.parameters) << row.preset;
    compared.insert(row.preset);
  }
  for (const PresetRow& row : PresetRows()) {
    // Nobody published sizes of ours.
    EXPECT_TRUE(compared.contains(row.name) || row.source.find("llama-debug") != std::string_view::npos) << row.name;
  }
}

// The longest sequence is what is published of the model; the one that is set is one that a plan can hold.
TEST(Presets, SetALengthThatTheModelTakes) {
  for (const PresetRow& row : PresetRows()) {
    const int64_t seq = std::stoll(ValueIn(row, "model.seq"));
    EXPECT_LE(seq, row.longest_seq) << row.name;
    EXPECT_LE(seq, 8192) << row.name;
  }
}

constexpr std::string_view Rest =
    "[optimizer]\nlr = 1e-4\n[data]\ntokens = [\"t.bin\"]\n[batch]\nmicro = 1\n[train]\nsteps = 5\n";

auto PlanOfText(const std::string& text, const std::vector<std::string>& sets = {}) -> Plan {
  auto plan = CompileText("r.toml", text, sets);
  CHECK(plan.ok(), "{}", plan.error().message);
  return *std::move(plan);
}

// Whatever comes after the reader sees the keys of a preset as it sees those of a recipe.
TEST(Presets, GiveThePlanOfTheirLines) {
  for (const std::string_view name : {"llama-debug", "qwen2-debug", "qwen3-debug", "llama3.2-1b"}) {
    const Plan by_preset = PlanOfText(fmt::format("[model]\npreset = \"{}\"\n{}", name, Rest));
    const Plan by_lines = PlanOfText(fmt::format("{}{}", PresetNamed(name)->lines, Rest));
    EXPECT_EQ(PlanHash(by_preset), PlanHash(by_lines)) << name;
    EXPECT_EQ(by_preset.model, by_lines.model) << name;
  }
}

TEST(Presets, EveryOneIsPlanned) {
  for (const PresetRow& row : PresetRows()) {
    const Plan plan = PlanOfText(fmt::format("[model]\npreset = \"{}\"\n[mesh]\ndp = 8\n{}", row.name, Rest));
    const std::string text = RenderReportText(Explain(plan));
    EXPECT_THAT(text, HasSubstr(fmt::format(
                          "\npreset      {}; init.scheme {}\n", row.name,
                          row.lines.find("\"normal\"") != std::string_view::npos ? "normal" : "torchtitan-llama")));
    EXPECT_THAT(text, HasSubstr("  preset " + std::string(row.name) + "  ")) << "of the init rules";
  }
}

TEST(Presets, ExplainSaysWhatIsSetBesideThem) {
  const std::string text =
      fmt::format("[model]\npreset = \"llama-debug\"\nseq = 64\nheads = 16\n\nhead_dim = 32\n{}", Rest);
  const Plan plan = PlanOfText(text, {"model.layers=2"});
  // A plan file says the same.
  const auto read = ParsePlan(PrintPlan(plan));
  ASSERT_TRUE(read.ok()) << read.error().message;
  for (const Plan* each : {&plan, &*read}) {
    EXPECT_THAT(RenderReportText(Explain(*each)),
                HasSubstr("\npreset      llama-debug; init.scheme torchtitan-llama\n"
                          "            layers 2 set by --set, where the preset has 6\n"
                          "            head_dim 32 set by recipe:6, which the preset does not set\n"
                          "            seq 64 set by recipe:3, where the preset has 2048\n"
                          "            set as in the preset: heads\n"));
    EXPECT_THAT(RenderReportJson(Explain(*each)), HasSubstr("\"name\": \"llama-debug\""));
  }
  EXPECT_EQ(PlanOfText(text, {"model.layers=2"}).model.at("layers"), "2");
  EXPECT_THAT(OriginText(plan, {.line = 0, .key = "model.vocab"}), "from the preset llama-debug, model.vocab");
  EXPECT_THAT(OriginText(plan, {.line = 0, .key = "model.norm_eps"}), "from the preset llama-debug, model.norm_eps");
  EXPECT_THAT(OriginText(plan, {.line = 0, .key = "shard.units"}), "from the default of shard.units");
}

// A rule for each parameter leaves the scheme of the preset nothing to do, which is no fault of the recipe's.
TEST(Presets, RulesOfTheRecipeComeFirst) {
  const std::string text = fmt::format(
      "[model]\npreset = \"llama-debug\"\n[[init.rule]]\nmatch = \"*\"\nvalue = \"normal(0, 0.02)\"\n{}", Rest);
  SourceSet sources;
  Diagnostics diagnostics(&sources);
  diagnostics.set_strict(true);
  const auto recipe = ReadRecipe("r.toml", text, {}, sources, diagnostics);
  ASSERT_TRUE(recipe.ok()) << recipe.error().message;
  const auto plan = Compile(*recipe, {}, diagnostics);
  ASSERT_TRUE(plan.ok()) << RenderText(diagnostics, {});
  EXPECT_EQ(RenderText(diagnostics, {}), "");
  EXPECT_EQ(plan->parameters[ParameterId{0}].init, "normal(0, 0.02)");
}

}  // namespace
}  // namespace shardc
