// How a recipe of the tests is put over its base, and that recipes of the tests take from their bases what they need.

#include "tests/support/over_base.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/recipe/case_file.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using testing::HasSubstr;

class OverBase : public testing::Test {
 protected:
  OverBase() {
    WriteText(folder_ / "base.toml",
              "# A base.\n\n[model]\nlayers = 2\nheads = 4\n\n[[init.rule]]\nmatch = \"*\"\nvalue = 1\n\n[data]\n"
              "tokens = [\"a.bin\"]\nseed = 3\n\n[train]\nsteps = 10\n");
    WriteText(folder_ / "upper.toml", "# base: base.toml\n\n[train]\nsteps = 20\n");
  }

  /// Returns the whole text, and before each line the line of the base that it is from.
  auto Whole(const std::string& text) -> std::string {
    const auto whole = PutOverBase(folder_.path(), text);
    if (!whole) {
      return whole.error().message;
    }
    std::string result;
    int32_t line = 0;
    for (size_t begin = 0; begin < whole->text.size(); begin = whole->text.find('\n', begin) + 1) {
      const LineSource source = whole->SourceOf(++line);
      result += source.is_of_base ? fmt::format("{}> ", source.line) : "";
      result += whole->text.substr(begin, whole->text.find('\n', begin) - begin) + "\n";
    }
    return result;
  }

  TemporaryFolder folder_;
};

TEST_F(OverBase, FillsSectionsAndKeys) {
  EXPECT_EQ(
      Whole("# base: base.toml\n\n[model]\nlayers = 3\n# expect: x\nffn = 8\n\n# comment\n[mesh]\ndp = 2\n"),
      "# base: base.toml\n\n[model]\nlayers = 3\n# expect: x\nffn = 8\n5> heads = 4\n\n# comment\n[mesh]\ndp = 2\n"
      "7> [[init.rule]]\n8> match = \"*\"\n9> value = 1\n11> [data]\n12> tokens = [\"a.bin\"]\n13> seed = 3\n"
      "15> [train]\n16> steps = 10\n");
}

TEST_F(OverBase, ListReplacesList) {
  const std::string data_and_train =
      "11> [data]\n12> tokens = [\"a.bin\"]\n13> seed = 3\n15> [train]\n16> steps = 10\n";
  const std::string model = "3> [model]\n4> layers = 2\n5> heads = 4\n";
  const std::string tables = "# base: base.toml\n[[init.rule]]\nmatch = \"a\"\n[[init.rule]]\nvalue = 2\n";
  EXPECT_EQ(Whole(tables), tables + model + data_and_train);
  const std::string array = "# base: base.toml\n[init]\nrule = []\n";
  EXPECT_EQ(Whole(array), array + model + data_and_train);
}

TEST_F(OverBase, WithoutLeavesOut) {
  const std::string text = "# base: base.toml without model, init.rule, data.tokens\n[data]\nseed = 4\n";
  EXPECT_EQ(Whole(text), text + "15> [train]\n16> steps = 10\n");
}

TEST_F(OverBase, WholeRecipeStaysAsItIs) {
  const std::string text = "# What bases are for.\n[model]\n";
  EXPECT_EQ(Whole(text), text);
}

TEST_F(OverBase, MistakesAreErrors) {
  struct Case {
    const char* text;
    const char* message;
  };
  constexpr Case cases[] = {
      {"# base: bse.toml\n", "`# base: bse.toml`: neither "},
      {"# base base.toml\n", "`# base base.toml`: the form is "},
      {"# base:base.toml\n", "`# base:base.toml`: the form is "},
      {"# base: upper.toml\n", "the file has a base itself"},
      {"# base: base.toml without steps\n", "the file has no `steps`"},
      {"# base: base.toml without \n", "the file has no ``"},
      {"# base: base.toml without model, init.rule, data, train\n", "the recipe takes nothing from the file"},
  };
  for (const Case& row : cases) {
    EXPECT_THAT(Whole(row.text), HasSubstr(row.message));
  }
}

TEST_F(OverBase, FindsRepeatedKey) {
  EXPECT_EQ(*FindRepeated(folder_.path(), "# base: base.toml\n[model]\nlayers = 3\nheads = 4\n"), "model.heads");
  EXPECT_EQ(*FindRepeated(folder_.path(), "# base: base.toml\n[model]\n# expect: x\nheads = 4\n"), "");
  EXPECT_EQ(*FindRepeated(folder_.path(), "[model]\nheads = 4\n"), "");
}

// A case whose base cannot be read has an error of its own, whatever it expects.
TEST_F(OverBase, CaseWithWrongBaseFails) {
  const RecipeCase recipe_case = ParseCase("case.toml", "# base: minimul.toml\n[mesh]\ndp = 2\n");
  CaseResult result;
  RunCase(recipe_case, recipe_case.text, result);
  EXPECT_THAT(result.internal_error, HasSubstr("`# base: minimul.toml`: neither "));
  EXPECT_FALSE(result.is_read);
}

}  // namespace
}  // namespace shardc
