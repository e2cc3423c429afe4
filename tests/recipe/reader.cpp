// The reader: values, defaults, and the range of text that each value and each fault is said to come from.

#include <gtest/gtest.h>

#include "tests/recipe/read_text.h"
#include "tests/support/edited.h"

namespace shardc {
namespace {

using Places = std::vector<std::string>;

TEST(Reader, TakesValuesAndDefaults) {
  ReadResult result;
  ReadRecipeText(MinimalText("[mesh]\ndp = 2\n"), {}, result);
  ASSERT_TRUE(result.ok) << RenderText(result.diagnostics, {});
  EXPECT_EQ(*result.recipe.model.layers, 2);
  EXPECT_EQ(result.recipe.model.layers.at, (SourceRange{0, 3, 10, 1}));
  EXPECT_TRUE(result.recipe.model.layers.is_set);
  EXPECT_EQ(*result.recipe.model.rope_theta, 10000.0);
  EXPECT_FALSE(result.recipe.model.rope_theta.is_set);
  EXPECT_FALSE(result.recipe.model.rope_theta.at.valid());
  EXPECT_FALSE(result.recipe.model.kv_heads.is_set);
  EXPECT_EQ(result.recipe.shard.reshard_after_forward->text, "layer < layers - 1");
  EXPECT_EQ(result.recipe.init.rule.at(0).value->text, "0");
  EXPECT_EQ(*result.recipe.mesh.dp, 2);
}

TEST(Reader, WholeNumbersServeAsRealOnes) {
  ReadResult result;
  ReadRecipeText(MinimalText("[[optimizer.group]]\nmatch = \"*\"\nlr_scale = 2\n"), {}, result);
  ASSERT_TRUE(result.ok);
  EXPECT_EQ(*result.recipe.optimizer.group.at(0).lr_scale, 2.0);
}

TEST(Reader, FormulasAndConditionsTakeTextOrPlainValues) {
  ReadResult result;
  ReadRecipeText(MinimalText("[shard]\nreshard_after_forward = false\n"), {"optimizer.lr=0.0003"}, result);
  ASSERT_TRUE(result.ok);
  EXPECT_EQ(result.recipe.optimizer.lr->text, "0.0003");
  EXPECT_EQ(result.recipe.shard.reshard_after_forward->text, "false");
}

TEST(Reader, ColumnsAndLengthsCountBytes) {
  struct Case {
    std::string line;
    std::string place;
  };
  // After the 19 lines of the minimal recipe and the line [run].
  const Case cases[] = {
      {"fist = \"nothing\"", "unknown-key 21:1+4"},
      {"  threads   =  \"two\"  # why", "wrong-type 21:16+5"},
      {"threads = [1,\n 2]", "wrong-type 21:11+3"},
      {"\"thr\xc3\xa9\" = 1", "unknown-key 21:1+7"},
      {"threads = \"\xc3\xa9\xe2\x82\xac\" # x", "wrong-type 21:11+7"},
      {"comm = 1\r", "wrong-type 21:8+1"},
  };
  for (const Case& c : cases) {
    ReadResult result;
    ReadRecipeText(MinimalText("[run]\n" + c.line + "\n"), {}, result);
    EXPECT_EQ(result.places(), Places{c.place}) << c.line;
  }
}

TEST(Reader, OneMisspeltKeyIsOneError) {
  ReadResult result;
  ReadRecipeText(Edited(MinimalText(), {{"hidden", "hiddn "}}), {}, result);
  EXPECT_EQ(result.places(), Places{"unknown-key 4:1+5"});
}

TEST(Reader, AWrongTypeIsNotMissingToo) {
  ReadResult result;
  ReadRecipeText(Edited(MinimalText(), {{"hidden = 8", "hidden = []"}}), {}, result);
  EXPECT_EQ(result.places(), Places{"wrong-type 4:10+2"});
}

TEST(Reader, EveryMissingSectionIsNamed) {
  ReadResult result;
  ReadRecipeText("", {}, result);
  EXPECT_EQ(result.places(), (Places{"missing-section 0:0+1", "missing-section 0:0+1", "missing-section 0:0+1"}));
}

TEST(Reader, SectionsMayBeDottedOrInline) {
  ReadResult result;
  ReadRecipeText("mesh.dp = 2\nshard = {units = \"block\"}\n" + MinimalText(), {}, result);
  ASSERT_TRUE(result.ok) << RenderText(result.diagnostics, {});
  EXPECT_EQ(*result.recipe.mesh.dp, 2);
  EXPECT_TRUE(result.recipe.shard.units.is_set);
}

}  // namespace
}  // namespace shardc
