// Keys that belong to one optimizer or to some families, and defaults that a family has of its own.

#include "compiler/recipe/owned_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/base/family_keys.h"
#include "compiler/check/check_context.h"
#include "compiler/check/check_recipe.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/resolved.h"
#include "compiler/recipe/write.h"
#include "tests/recipe/read_text.h"

namespace shardc {
namespace {

auto AllFamilies() -> std::vector<Family> {
  std::vector<Family> families;
  for (size_t i = 0; i < CountOf<Family>(); ++i) {
    families.push_back(static_cast<Family>(i));
  }
  return families;
}

TEST(OwnedKeys, FamiliesHaveKeysOfTheTable) {
  std::set<std::string> of_table;
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    if (row.section == "model" && row.name != "family" && row.name != "preset") {
      of_table.insert(row.name);
    }
  }
  std::set<std::string> of_families;
  for (const Family family : AllFamilies()) {
    const std::vector<std::string_view> keys = KeysOf(family);
    EXPECT_GT(keys.size(), 1U) << ToText(family);
    EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), keys.size()) << ToText(family) << " has a key twice";
    for (const std::string_view key : keys) {
      EXPECT_TRUE(of_table.contains(std::string(key))) << ToText(family) << ": " << key;
      EXPECT_TRUE(HasKey(family, key));
      EXPECT_TRUE(HasSize(family, key));
      of_families.emplace(key);
    }
    EXPECT_FALSE(HasKey(family, "family"));
    EXPECT_FALSE(HasKey(family, "layer"));
    EXPECT_FALSE(HasSize(family, "layer"));
  }
  EXPECT_EQ(of_families, of_table) << "keys that no family has";
}

TEST(OwnedKeys, KeysOfOptimizersAreThoseOfTheirRows) {
  EXPECT_EQ(OwnersOf("optimizer", "betas"), std::vector<std::string_view>{"adamw"});
  EXPECT_EQ(OwnersOf("optimizer", "nesterov"), std::vector<std::string_view>{"sgd"});
  EXPECT_TRUE(OwnersOf("optimizer", "lr").empty());
  EXPECT_TRUE(OwnersOf("model", "family").empty());
}

/// What a table says where `rope_theta` is qwen3's alone, and `kv_heads` is not qwen2's.
const std::vector<OwnedKey> SomeLack{{"model", "rope_theta", "qwen3"},
                                     {"model", "kv_heads", "llama"},
                                     {"model", "kv_heads", "qwen3"},
                                     {"optimizer", "rope_theta", "sgd"}};

auto Complaints(const std::string& family, const std::vector<std::string>& sets) -> std::vector<std::string> {
  ReadResult result;
  std::vector<std::string> all{"model.family=" + family};
  all.insert(all.end(), sets.begin(), sets.end());
  ReadRecipeText(MinimalText(), all, result);
  EXPECT_TRUE(result.ok);
  CheckContext context(result.recipe, result.diagnostics);
  CheckOwnedKeys(context, SomeLack);
  std::vector<std::string> messages;
  for (const Diagnostic& diagnostic : result.diagnostics.all()) {
    EXPECT_EQ(diagnostic.kind, DiagnosticKind::LackedKey);
    messages.push_back(diagnostic.text);
  }
  return messages;
}

TEST(OwnedKeys, AFamilyIsRefusedAKeyThatItLacks) {
  const std::vector<std::string> sets{"model.rope_theta=2", "model.kv_heads=1"};
  EXPECT_EQ(Complaints("llama", sets),
            std::vector<std::string>{"`rope_theta` is no key of the family \"llama\"; it belongs to \"qwen3\""});
  EXPECT_EQ(
      Complaints("qwen2", sets),
      (std::vector<std::string>{"`kv_heads` is no key of the family \"qwen2\"; it belongs to \"llama\" and \"qwen3\"",
                                "`rope_theta` is no key of the family \"qwen2\"; it belongs to \"qwen3\""}));
  EXPECT_TRUE(Complaints("qwen3", sets).empty());
  EXPECT_TRUE(Complaints("qwen2", {}).empty());
  // One that there is not is another finding.
  EXPECT_TRUE(Complaints("gpt9", sets).empty());
}

auto NormEpsOf(const std::vector<std::string>& sets) -> double {
  ReadResult result;
  ReadRecipeText(MinimalText(), sets, result);
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(ResolveModel(result.recipe).norm_eps, *result.recipe.model.norm_eps);
  return *result.recipe.model.norm_eps;
}

TEST(OwnedKeys, AFamilyHasItsOwnDefaults) {
  EXPECT_EQ(NormEpsOf({}), 1e-5);
  EXPECT_EQ(NormEpsOf({"model.family=qwen2"}), 1e-6);
  EXPECT_EQ(NormEpsOf({"model.family=qwen3"}), 1e-6);
  EXPECT_EQ(NormEpsOf({"model.family=qwen3", "model.norm_eps=1e-5"}), 1e-5);
  EXPECT_EQ(NormEpsOf({"model.norm_eps=1e-3", "model.family=qwen2"}), 1e-3);

  ReadResult result;
  ReadRecipeText(MinimalText(), {"model.family=qwen3"}, result);
  EXPECT_NE(PrintRecipe(result.recipe).find("\nnorm_eps = 1e-06  # default\n"), std::string::npos);
}

auto RowOf(const std::string& path) -> RecipeKeyRow {
  const auto row = std::ranges::find(RecipeKeyRows(), path, &RecipeKeyRow::path);
  return row == RecipeKeyRows().end() ? RecipeKeyRow{} : *row;
}
auto DocOf(const std::string& path) -> std::string { return RowOf(path).doc; }

TEST(OwnedKeys, ARecipeIsPrintedWithoutTheKeysThatItLacks) {
  ReadResult result;
  ReadRecipeText(MinimalText(), {"optimizer.name=sgd"}, result);
  const std::string text = PrintRecipe(result.recipe);
  EXPECT_NE(text.find("\n# momentum: unset; "), std::string::npos);
  EXPECT_EQ(text.find("betas"), std::string::npos);
}

TEST(OwnedKeys, TheReferenceSaysWhoseTheyAre) {
  EXPECT_FALSE(RowOf("optimizer.betas").is_of_all);
  EXPECT_TRUE(RowOf("optimizer.lr").is_of_all && RowOf("model.heads").is_of_all);
  EXPECT_TRUE(DocOf("model.norm_eps").ends_with("; default of \"qwen2\" and \"qwen3\": 1e-06"));
  EXPECT_TRUE(DocOf("optimizer.betas").ends_with("; of \"adamw\" alone"));
  EXPECT_TRUE(DocOf("optimizer.momentum").ends_with("; of \"sgd\" alone"));
  for (const char* path : {"model.layers", "model.rope_theta", "optimizer.lr", "optimizer.group.weight_decay"}) {
    EXPECT_EQ(DocOf(path).find(" alone"), std::string::npos) << path;
    EXPECT_EQ(DocOf(path).find("default of"), std::string::npos) << path;
  }
}

}  // namespace
}  // namespace shardc
