// --set and --unset: which text gives which value, and what is refused.

#include <gtest/gtest.h>

#include "compiler/recipe/write.h"
#include "tests/recipe/read_text.h"

namespace shardc {
namespace {

TEST(Overrides, ValuesAreTomlOrBareText) {
  struct Case {
    std::vector<std::string> overrides;
    std::string line;
  };
  const Case cases[] = {
      {{"train.steps=20"}, "steps = 20  # --set"},
      {{"train.steps=20", "train.steps=30"}, "steps = 30  # --set"},
      {{" train.steps = 20 "}, "steps = 20  # --set"},
      {{"optimizer.lr=3e-4"}, "lr = 0.0003  # --set"},
      {{"optimizer.lr=1e-3 * step / steps"}, "lr = \"1e-3 * step / steps\"  # --set"},
      {{"optimizer.lr=if step == 0 then 0 else 1"}, "lr = \"if step == 0 then 0 else 1\"  # --set"},
      {{"optimizer.lr=\"1e-3\""}, "lr = \"1e-3\"  # --set"},
      {{"shard.reshard_after_forward=layer < 2"}, "reshard_after_forward = \"layer < 2\"  # --set"},
      {{"shard.reshard_after_forward=true"}, "reshard_after_forward = true  # --set"},
      {{"start.run_id=007"}, "run_id = \"007\"  # --set"},
      {{"start.run_id=12"}, "run_id = \"12\"  # --set"},
      {{"start.run_id=true"}, "run_id = \"true\"  # --set"},
      {{"checkpoint.dir=a=b"}, "dir = \"a=b\"  # --set"},
      {{"data.tokens=[\"a\", 'b']"}, "tokens = [\"a\", \"b\"]  # --set"},
      {{"optimizer.betas=[0.8, 1e-1]"}, "betas = [0.8, 0.1]  # --set"},
      {{"init.rule=[{match = \"a\", value = 1}]"}, "match = \"a\"  # --set"},
  };
  for (const Case& c : cases) {
    ReadResult result;
    ReadRecipeText(MinimalText(), c.overrides, result);
    ASSERT_TRUE(result.ok) << c.overrides[0] << "\n" << RenderText(result.diagnostics, {});
    EXPECT_NE(PrintRecipe(result.recipe).find("\n" + c.line + "\n"), std::string::npos) << c.line << " not in\n"
                                                                                        << PrintRecipe(result.recipe);
    EXPECT_EQ(result.recipe.overrides, c.overrides);
  }
}

TEST(Overrides, ReplaceListsAsAWhole) {
  ReadResult result;
  ReadRecipeText(MinimalText(), {"init.rule=[{match = \"a\", value = 1}, {match = \"b\", value = 2}]"}, result);
  ASSERT_TRUE(result.ok);
  EXPECT_EQ(result.recipe.init.rule.size(), 2U);
}

TEST(Overrides, GiveWhatTheFileLacks) {
  ReadResult result;
  std::string text = MinimalText();
  text.erase(text.find("[train]"));
  ReadRecipeText(text, {"train.steps=5"}, result);
  EXPECT_TRUE(result.ok) << RenderText(result.diagnostics, {});
}

TEST(Overrides, TakeOutKeysAndLists) {
  ReadResult result;
  ReadRecipeText(MinimalText() + "\n[checkpoint]\nevery = 7\nkeep = 9\n",
                 {"--unset checkpoint.every", "--unset checkpoint.keep", "checkpoint.keep=3", "--unset init.rule",
                  "init.scheme=gpt2", "--unset data.eval"},
                 result);
  ASSERT_TRUE(result.ok) << RenderText(result.diagnostics, {});
  EXPECT_FALSE(result.recipe.checkpoint.every.is_set);
  EXPECT_EQ(*result.recipe.checkpoint.every, 0);
  EXPECT_EQ(*result.recipe.checkpoint.keep, 3);
  EXPECT_TRUE(result.recipe.init.rule.empty());
}

TEST(Overrides, LackWhatIsTakenOut) {
  ReadResult result;
  ReadRecipeText(MinimalText(), {"--unset train.steps"}, result);
  EXPECT_NE(RenderText(result.diagnostics, {}).find("`steps` is missing"), std::string::npos)
      << RenderText(result.diagnostics, {});
  for (const auto& [text, says] :
       {std::pair("--unset train.step", "did you mean --unset train.steps?"), std::pair("--unset train", "is no key"),
        std::pair("--unset ", "write a section and a key"), std::pair("--unset init.rule.match", "is no key")}) {
    ReadResult refused;
    ReadRecipeText(MinimalText(), {text}, refused);
    EXPECT_FALSE(refused.ok);
    EXPECT_NE(RenderText(refused.diagnostics, {}).find(says), std::string::npos) << text << "\n"
                                                                                 << RenderText(refused.diagnostics, {});
  }
}

TEST(Overrides, Refused) {
  struct Case {
    std::string text;
    std::string place;
  };
  const Case cases[] = {
      {"", "bad-override 1:1+1"},
      {"train", "bad-override 1:1+5"},
      {"=3", "bad-override 1:1+2"},
      {"steps=3", "bad-override 1:1+7"},
      {".steps=3", "bad-override 1:1+8"},
      {"train.=3", "bad-override 1:1+8"},
      {"train.steps", "bad-override 1:1+11"},
      {"init.rule.match=x", "bad-override 1:1+15"},
      {"train.steps=3\nmodel.layers=4", "bad-override 1:1+1"},
      {"train.\"steps\"=3", "bad-override 1:1+13"},
      {"data.tokens=[1", "bad-override 1:15+1"},
      {"train.stepz=3", "unknown-key 1:7+5"},
      {"trane.steps=3", "unknown-section 1:1+5"},
      {"train.steps=", "wrong-type 1:13+1"},
      {"train.steps=x", "wrong-type 1:13+1"},
      {"optimizer.eps=nan", "out-of-range 1:15+3"},
      {"init.rule=3", "wrong-type 1:11+1"},
      {std::string("train.steps=3\0", 14), "toml-syntax 1:14+1"},
      {"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q=1", "key-too-deep 1:1+1"},
  };
  for (const Case& c : cases) {
    ReadResult result;
    ReadRecipeText(MinimalText(), {c.text}, result);
    EXPECT_EQ(result.places(), std::vector<std::string>{c.place}) << c.text;
    for (const Diagnostic& diagnostic : result.diagnostics.all()) {
      EXPECT_EQ(diagnostic.at.source, 1) << c.text;
    }
  }
}

TEST(Overrides, AKeyWithoutItsSectionIsAnsweredWithIt) {
  const auto help = [](const std::string& text) {
    ReadResult result;
    ReadRecipeText(MinimalText(), {text}, result);
    return result.diagnostics.all().at(0).help;
  };
  EXPECT_EQ(help("dp=2"), "write --set mesh.dp=2");
  EXPECT_EQ(help(" seed = 3"), "write --set init.seed = 3 or --set data.seed = 3");
  EXPECT_EQ(help("nothing=3"), "");
  EXPECT_EQ(help("dp"), "");
}

TEST(Overrides, AreBoundedInNumber) {
  ReadResult result;
  ReadRecipeText(MinimalText(), std::vector<std::string>(2000, "train.steps=3"), result);
  EXPECT_EQ(result.places(), std::vector<std::string>{"bad-override 0:0+1"});
}

}  // namespace
}  // namespace shardc
