// Presets in recipes: which keys they give, where these are said to stand, and what is assumed for a plan.

#include "compiler/recipe/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/base/preset_rows.h"
#include "compiler/check/check_recipe.h"
#include "compiler/recipe/reference.h"
#include "compiler/recipe/resolved.h"
#include "compiler/recipe/write.h"
#include "tests/recipe/read_text.h"

namespace shardc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

auto ReadAssuming(const std::string& text, const std::vector<std::string>& sets, ReadResult& result) -> void {
  auto recipe = ReadRecipe("recipe.toml", text, sets, result.sources, result.diagnostics, LeftOut::Assume);
  result.ok = recipe.ok();
  if (recipe) {
    result.recipe = *std::move(recipe);
  }
}

// Each value of the table is written as the compiler writes it: explain compares the two.
TEST(Presets, RowsAreWrittenAsRecipesAre) {
  for (const PresetRow& row : PresetRows()) {
    ReadResult result;
    ReadAssuming(fmt::format("model.preset = \"{}\"\n", row.name), {}, result);
    ASSERT_TRUE(result.ok) << row.name << "\n" << RenderText(result.diagnostics, {});
    const std::vector<RecipeEntry> resolved = ResolvedKeys(result.recipe);
    const std::vector<PresetKey> keys = KeysOf(row);
    EXPECT_GE(keys.size(), 12U) << row.name;
    for (const PresetKey& key : keys) {
      const auto found = std::ranges::find(resolved, key.path, &RecipeEntry::key);
      ASSERT_TRUE(found != resolved.end()) << row.name << " " << key.path;
      EXPECT_EQ(found->value, key.value) << row.name << " " << key.path;
    }
    CheckRecipe(result.recipe, result.diagnostics);
    EXPECT_EQ(RenderText(result.diagnostics, {}), "") << row.name;
  }
}

TEST(Presets, KeysOfTheRecipeAndOfSetStandAboveThose) {
  ReadResult result;
  ReadAssuming("[model]\nseq = 64\npreset = \"llama3-8b\"\n", {"model.layers=3"}, result);
  ASSERT_TRUE(result.ok) << RenderText(result.diagnostics, {});
  const std::string text = PrintRecipe(result.recipe);
  EXPECT_THAT(text, HasSubstr("\npreset = \"llama3-8b\"  # recipe.toml:3\n"));
  EXPECT_THAT(text, HasSubstr("\nfamily = \"llama\"  # preset llama3-8b\n"));
  EXPECT_THAT(text, HasSubstr("\nseq = 64  # recipe.toml:2\n"));
  EXPECT_THAT(text, HasSubstr("\nlayers = 3  # --set\n"));
  EXPECT_THAT(text, HasSubstr("\nhidden = 4096  # preset llama3-8b\n"));
  EXPECT_THAT(text, HasSubstr("\nscheme = \"torchtitan-llama\"  # preset llama3-8b\n"));
  EXPECT_THAT(text, HasSubstr("\n# steps = 1000  # assumed\n"));
  ReadResult again;
  ReadAssuming(text, {}, again);
  ASSERT_TRUE(again.ok) << RenderText(again.diagnostics, {});
  EXPECT_EQ(*again.recipe.model.seq, 64);
  EXPECT_EQ(AssumedLines(again.recipe), AssumedLines(result.recipe));
}

TEST(Presets, OfSetReplacesThatOfTheRecipe) {
  ReadResult result;
  ReadAssuming("[model]\npreset = \"llama3-8b\"\n", {"model.preset=qwen3-0.6b"}, result);
  ASSERT_TRUE(result.ok) << RenderText(result.diagnostics, {});
  EXPECT_EQ(*result.recipe.model.family, Family::Qwen3);
  EXPECT_EQ(*result.recipe.model.hidden, 1024);
  EXPECT_EQ(result.recipe.init.scheme->text(), "normal");
}

// A fault in which a key of a preset takes part names the preset.
TEST(Presets, AFaultBesideOneNamesIt) {
  ReadResult result;
  ReadAssuming("[model]\npreset = \"llama3-8b\"\nheads = 30\nhead_dim = 128\n", {}, result);
  ASSERT_TRUE(result.ok) << RenderText(result.diagnostics, {});
  CheckRecipe(result.recipe, result.diagnostics);
  EXPECT_THAT(RenderText(result.diagnostics, {}),
              HasSubstr("recipe.toml:3:9: error: `heads` is 30, `kv_heads` is 8; `heads` is not a multiple of "
                        "`kv_heads` [heads-not-divisible]\n"
                        "    3 | heads = 30\n"
                        "      |         ^~\n"
                        "preset llama3-8b:6:12: note: `kv_heads` set here\n"
                        "help: use heads = 24 or 32\n"));
}

// The line to change is the user's, and what the help says agrees with all sizes of the preset.
TEST(Presets, AFaultBesideOneIsTheUsersToMend) {
  const auto told = [](const std::string& keys) {
    ReadResult result;
    ReadAssuming("[model]\npreset = \"llama3-8b\"\n" + keys, {}, result);
    CheckRecipe(result.recipe, result.diagnostics);
    return RenderText(result.diagnostics, {});
  };
  const std::string of_heads = told("heads = 30\n");
  EXPECT_THAT(of_heads, HasSubstr("recipe.toml:3:9: error: `heads` is 30, `kv_heads` is 8"));
  EXPECT_THAT(of_heads, HasSubstr("help: use heads = 16 or 32\n"));
  EXPECT_EQ(of_heads.find("error: "), of_heads.rfind("error: ")) << of_heads;
  EXPECT_EQ(told("heads = 16\n"), "");
  const std::string of_both = told("heads = 30\nkv_heads = 30\n");
  EXPECT_THAT(of_both, HasSubstr("recipe.toml:3:9: error: `hidden` is 4096, `heads` is 30"));
  EXPECT_THAT(of_both, HasSubstr("preset llama3-8b:4:10: note: `hidden` set here\n"));
  const std::string of_hidden = told("hidden = 4100\n");
  EXPECT_THAT(of_hidden, HasSubstr("recipe.toml:3:10: error: `hidden` is 4100, `heads` is 32"));
  EXPECT_THAT(of_hidden, HasSubstr("help: use hidden = 4096 or 4160, or set head_dim\n"));
}

// A key that one of the recipe's own replaces has no effect, and nobody wrote it.
TEST(Presets, KeysOfOneThatAreNotUsedAreNoWarnings) {
  ReadResult result;
  ReadAssuming("[model]\npreset = \"llama3.1-8b\"\nrope_frequency = \"0.001\"\n", {}, result);
  ASSERT_TRUE(result.ok) << RenderText(result.diagnostics, {});
  CheckRecipe(result.recipe, result.diagnostics);
  EXPECT_EQ(RenderText(result.diagnostics, {}), "");
}

TEST(Presets, AssumeWhatARecipeLeavesOut) {
  struct Case {
    std::string text;
    std::vector<std::string> assumed;
  };
  const Case cases[] = {
      {"", {"optimizer.lr", "data.tokens", "batch.micro", "train.steps"}},
      {"[train]\nlog_every = 3\n", {"optimizer.lr", "data.tokens", "batch.micro", "train.steps"}},
      {"[train]\nsteps = 3\n[optimizer]\nlr = 1\n", {"data.tokens", "batch.micro"}},
      {"[batch]\nglobal = 8\n", {"optimizer.lr", "data.tokens", "train.steps"}},
      {"[batch]\naccumulate = 8\n", {"optimizer.lr", "data.tokens", "batch.micro", "train.steps"}},
      {"[[data.source]]\ntokens = [\"a\"]\nweight = 1\n", {"optimizer.lr", "batch.micro", "train.steps"}},
      {std::string("[data]\ntokens = [\"a\"]\n[batch]\nmicro = 2\n[train]\nsteps = 1\n[optimizer]\nlr = 1e-3\n"), {}},
  };
  for (const Case& c : cases) {
    ReadResult result;
    ReadAssuming("model.preset = \"llama-debug\"\n" + c.text, {}, result);
    ASSERT_TRUE(result.ok) << c.text << RenderText(result.diagnostics, {});
    std::vector<std::string> keys;
    for (const std::string& line : AssumedLines(result.recipe)) {
      keys.push_back(line.substr(0, line.find(' ')));
    }
    EXPECT_EQ(keys, c.assumed) << c.text;
    CheckRecipe(result.recipe, result.diagnostics);
    EXPECT_EQ(RenderText(result.diagnostics, {}), "") << c.text;
  }
}

TEST(Presets, NothingIsAssumedWithoutOneOrForARun) {
  ReadResult without;
  ReadAssuming("[model]\nfamily = \"llama\"\nlayers = 2\nhidden = 8\nheads = 2\nffn = 16\nvocab = 32\nseq = 8\n", {},
               without);
  EXPECT_THAT(without.places(), ElementsAre("missing-section 0:0+1", "missing-section 0:0+1"));
  ReadResult of_run;
  ReadRecipeText("model.preset = \"llama3-8b\"\n", {}, of_run);
  EXPECT_FALSE(of_run.ok);
  const std::string text = RenderText(of_run.diagnostics, {});
  EXPECT_THAT(text, HasSubstr("[train] is missing; these keys have no default: `steps`"));
  EXPECT_THAT(text, HasSubstr("[optimizer] is missing; these keys have no default: `lr`"));
}

TEST(Presets, ATypeThatIsWrongIsToldOnce) {
  ReadResult result;
  ReadAssuming("[model]\npreset = 3\n", {}, result);
  EXPECT_THAT(result.places(), ElementsAre("wrong-type 2:10+1"));
  ReadResult empty;
  ReadAssuming("[model]\npreset = \"\"\n", {}, empty);
  EXPECT_THAT(empty.places(), ElementsAre("unknown-preset 2:10+2"));
}

TEST(Presets, StarterIsARecipeOfEachPreset) {
  for (const PresetRow& row : PresetRows()) {
    ReadResult result;
    ReadRecipeText(StarterRecipe({.lines = PresetLines(row.name)}), {}, result);
    ASSERT_TRUE(result.ok) << RenderText(result.diagnostics, {});
    CheckRecipe(result.recipe, result.diagnostics);
    EXPECT_EQ(RenderText(result.diagnostics, {}), "") << row.name;
    EXPECT_TRUE(StarterRecipe({.lines = PresetLines(row.name)}).starts_with("#:schema "));
    // A formatter that takes the text for code would run words together.
    EXPECT_THAT(StarterRecipe({.lines = PresetLines(row.name)}),
                HasSubstr("\n# Token files, relative to this file; `shardc tokenize --bytes "));
  }
}

}  // namespace
}  // namespace shardc
