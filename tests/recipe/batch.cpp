// Two batch sizes give the third.

#include <gtest/gtest.h>

#include "compiler/check/check_recipe.h"
#include "compiler/recipe/resolved.h"
#include "tests/recipe/read_text.h"
#include "tests/support/edited.h"

namespace shardc {
namespace {

TEST(Batch, TwoGiveTheThird) {
  struct Case {
    std::string text;
    int64_t dp;
    int64_t global;
    int64_t micro;
    int64_t accumulate;
  };
  const Case cases[] = {
      {"global = 12", 2, 12, 6, 1},
      {"micro = 3", 2, 6, 3, 1},
      {"global = 12\nmicro = 3", 2, 12, 3, 2},
      {"global = 12\naccumulate = 3", 2, 12, 2, 3},
      {"micro = 3\naccumulate = 2", 2, 12, 3, 2},
      {"global = 12\nmicro = 3\naccumulate = 2", 2, 12, 3, 2},
      {"global = 3", 3, 3, 1, 1},
  };
  for (const Case& c : cases) {
    ReadResult result;
    ReadRecipeText(Edited(MinimalText(fmt::format("[mesh]\ndp = {}\n", c.dp)), {{"micro = 1", c.text}}), {}, result);
    ASSERT_TRUE(result.ok);
    CheckRecipe(result.recipe, result.diagnostics);
    ASSERT_FALSE(result.diagnostics.has_errors()) << RenderText(result.diagnostics, {});
    const BatchSizes sizes = ResolveBatch(result.recipe);
    EXPECT_EQ(sizes.global, c.global) << c.text;
    EXPECT_EQ(sizes.micro, c.micro) << c.text;
    EXPECT_EQ(sizes.accumulate, c.accumulate) << c.text;
  }
}

TEST(Batch, ModelSizesHaveTheirDefaults) {
  ReadResult result;
  ReadRecipeText(MinimalText(), {}, result);
  ASSERT_TRUE(result.ok);
  const ModelSizes sizes = ResolveModel(result.recipe);
  EXPECT_EQ(sizes.kv_heads, 2);
  EXPECT_EQ(sizes.head_dim, 4);
  EXPECT_EQ(sizes.family, "llama");
}

/// Every size at its upper bound: the check neither overflows nor lets it pass.
TEST(Batch, ExtremeSizesAreRefused) {
  ReadResult result;
  ReadRecipeText(MinimalText(),
                 {"model.layers=65536", "model.hidden=16777216", "model.heads=1048576", "model.head_dim=1048576",
                  "model.ffn=67108864", "model.vocab=2147483647", "model.seq=1073741824", "mesh.dp=1048576",
                  "batch.micro=1099511627776", "batch.accumulate=1099511627776", "batch.global=1099511627776",
                  "train.steps=1099511627776"},
                 result);
  ASSERT_TRUE(result.ok);
  CheckRecipe(result.recipe, result.diagnostics);
  EXPECT_EQ(result.places(), (std::vector<std::string>{"sizes-too-large 1:1+7", "sizes-too-large 16:1+7"}));
}

}  // namespace
}  // namespace shardc
