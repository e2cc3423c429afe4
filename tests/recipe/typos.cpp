// For every key, section and word of the tables, a slip of one letter is answered with that name; where another name is
// as near, that one may be told.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/check/check_recipe.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/other_tools.h"
#include "tests/recipe/read_text.h"

namespace shardc {
namespace {

/// A letter left out, doubled, changed, or swapped with the next one, at every place.
auto TyposOf(const std::string& word) -> std::set<std::string> {
  std::set<std::string> typos;
  for (size_t i = 0; i < word.size(); ++i) {
    std::string typo = word;
    typos.insert(typo.erase(i, 1));
    typos.insert(std::string(word).insert(i, 1, word[i]));
    for (const char c : {'x', 'e', '_'}) {
      typo = word;
      typo[i] = c;
      typos.insert(typo);
    }
    if (i + 1 < word.size()) {
      typo = word;
      std::swap(typo[i], typo[i + 1]);
      typos.insert(typo);
    }
  }
  typos.erase(word);
  typos.erase("");
  return typos;
}

auto IsOneEdit(const std::string& typo, const std::string& known) -> bool {
  std::string a = typo;
  std::string b = known;
  const auto [first_a, first_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  a.erase(a.begin(), first_a);
  b.erase(b.begin(), first_b);
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    a.pop_back();
    b.pop_back();
  }
  const bool is_swap = a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0];
  return (a.size() <= 1 && b.size() <= 1) || is_swap;
}

/// The help of the first diagnostic of this kind, or its text without one.
auto AnswerTo(const Diagnostics& diagnostics, DiagnosticKind kind) -> std::string {
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    if (diagnostic.kind == kind) {
      return diagnostic.help.empty() ? diagnostic.text : diagnostic.help;
    }
  }
  return "";
}

/// Does the answer name `meant`, or another that the slip is as near to?
auto Names(const std::string& answer, const std::string& typo, const std::string& meant,
           const std::vector<std::string>& known) -> bool {
  const auto is_named = [&](const std::string& name) {
    return answer.find("`" + name + "`") != std::string::npos || answer.find("\"" + name + "\"") != std::string::npos ||
           answer.find("[" + name + "]") != std::string::npos;
  };
  return is_named(meant) ||
         std::ranges::any_of(known, [&](const std::string& name) { return IsOneEdit(typo, name) && is_named(name); });
}

TEST(Typos, OfKeysAreAnsweredWithTheKey) {
  int64_t num_typos = 0;
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    std::vector<std::string> siblings;
    std::set<std::string> elsewhere;
    for (const RecipeKeyRow& other : RecipeKeyRows()) {
      elsewhere.insert(other.name);
      if (other.section == row.section && other.list == row.list) {
        siblings.push_back(other.name);
      }
    }
    for (const RecipeSectionRow& section : RecipeSectionRows()) {
      if (section.section == row.section && row.list.empty() && !section.list.empty()) {
        siblings.push_back(section.list);
      }
    }
    for (const std::string& typo : TyposOf(row.name)) {
      // Another key by its right name, or the name of something that is not offered, is no slip.
      if (elsewhere.contains(typo) || std::ranges::find(siblings, typo) != siblings.end() ||
          !HintOfKey(row.section, typo).empty()) {
        continue;
      }
      ++num_typos;
      const std::string header =
          row.list.empty() ? fmt::format("[{}]", row.section) : fmt::format("[[{}.{}]]", row.section, row.list);
      ReadResult result;
      ReadRecipeText(fmt::format("{}\n{} = 1\n", header, typo), {}, result);
      const std::string answer = AnswerTo(result.diagnostics, DiagnosticKind::UnknownKey);
      EXPECT_TRUE(Names(answer, typo, row.name, siblings)) << row.path() << " as " << typo << ": " << answer;
    }
  }
  EXPECT_GT(num_typos, 1000);
}

TEST(Typos, OfSectionsAreAnsweredWithTheSection) {
  std::vector<std::string> sections;
  for (const RecipeSectionRow& row : RecipeSectionRows()) {
    if (row.list.empty()) {
      sections.push_back(row.section);
    }
  }
  for (const std::string& section : sections) {
    for (const std::string& typo : TyposOf(section)) {
      if (std::ranges::find(sections, typo) != sections.end() || !HintOfSection(typo).empty()) {
        continue;
      }
      ReadResult result;
      ReadRecipeText(fmt::format("[{}]\n", typo), {}, result);
      const std::string answer = AnswerTo(result.diagnostics, DiagnosticKind::UnknownSection);
      EXPECT_TRUE(Names(answer, typo, section, sections)) << typo << ": " << answer;
    }
  }
}

TEST(Typos, OfWordsAreAnsweredWithTheWord) {
  int64_t num_typos = 0;
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    std::vector<std::string> words;
    for (const Choice& choice : ChoicesOf(row.path())) {
      words.push_back(choice.word);
    }
    for (const Choice& choice : ChoicesOf(row.path())) {
      for (const std::string& typo : choice.accepted ? TyposOf(choice.word) : std::set<std::string>{}) {
        if (std::ranges::find(words, typo) != words.end() || !HintOfKey("", typo).empty()) {
          continue;
        }
        ++num_typos;
        const std::string header =
            row.list.empty() ? fmt::format("[{}]", row.section) : fmt::format("[[{}.{}]]", row.section, row.list);
        SourceSet sources;
        Diagnostics diagnostics(&sources);
        const Recipe recipe = ReadSoundParts("recipe.toml", fmt::format("{}\n{} = \"{}\"\n", header, row.name, typo),
                                             {}, sources, diagnostics, LeftOut::Refuse);
        CheckRecipe(recipe, diagnostics);
        const std::string answer = AnswerTo(
            diagnostics, row.path() == "model.preset" ? DiagnosticKind::UnknownPreset : DiagnosticKind::UnknownChoice);
        EXPECT_TRUE(Names(answer, typo, choice.word, words)) << row.path() << " = " << typo << ": " << answer;
      }
    }
  }
  EXPECT_GT(num_typos, 200);
}

}  // namespace
}  // namespace shardc
