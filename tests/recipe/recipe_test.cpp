// Every recipe of tests/recipe gives exactly the diagnostics that it says, and every diagnostic has such a recipe.
// `tools/dev goldens --update` rewrites the expectations.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "compiler/recipe/resolved.h"
#include "compiler/recipe/write.h"
#include "tests/recipe/case_file.h"
#include "tests/recipe/read_text.h"
#include "tests/support/recorded.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_lines.h"

namespace shardc {
namespace {

const std::filesystem::path Folder = std::filesystem::path(SHARDC_SOURCE_DIR) / "tests" / "recipe";

auto CaseFiles() -> std::vector<std::filesystem::path> {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(Folder)) {
    if (entry.path().extension() == ".toml") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

auto ExpectationsIn(const std::string& text) -> std::vector<std::string> {
  std::vector<std::string> lines = LinesOf(text);
  std::erase_if(lines, [](const std::string& line) { return !IsExpectation(line); });
  return lines;
}

/// Calls `use` with the recipe of each case that can be read.
auto ForEachSoundCase(const std::function<void(const Recipe&)>& use) -> void {
  for (const auto& path : CaseFiles()) {
    SCOPED_TRACE(path.filename().string());
    const RecipeCase recipe_case = ParseCase(path.filename().string(), ReadText(path.string()));
    CaseResult result;
    RunCase(recipe_case, recipe_case.text, result);
    if (result.is_read) {
      use(result.recipe);
    }
  }
}

/// Returns the text of a recipe without the comments, which say where the values come from, and if they have an effect.
auto ValuesOf(const Recipe& recipe) -> std::string {
  std::string values;
  for (const std::string& line : LinesOf(PrintRecipe(recipe))) {
    const size_t begin = line.ends_with("without effect here") ? 2 : 0;
    values += line.substr(begin, line.rfind("  # ") - begin) + "\n";
  }
  return values;
}

auto LinesOfResolvedKeys(const Recipe& recipe) -> std::string {
  std::string lines;
  for (const RecipeEntry& entry : ResolvedKeys(recipe)) {
    lines += fmt::format("{} = {}\n", entry.key, entry.value);
  }
  return lines;
}

TEST(RecipeCases, GiveTheirDiagnostics) {
  for (const auto& path : CaseFiles()) {
    SCOPED_TRACE(path.filename().string());
    const std::string file_text = ReadText(path.string());
    const RecipeCase recipe_case = ParseCase(path.filename().string(), file_text);
    CaseResult result;
    RunCase(recipe_case, recipe_case.text, result);
    EXPECT_EQ(result.internal_error, "");
    EXPECT_EQ(path.filename().string().starts_with("fail_"), result.diagnostics.has_errors())
        << "a file is called fail_ if and only if it fails";
    const std::string expected = WithExpectations(recipe_case, result);
    ExpectRecorded("tests/recipe/" + recipe_case.name, expected, "tools/dev goldens --update");
    // The places as they are in the file, not as the insertion computed them.
    CaseResult as_it_stands;
    RunCase(recipe_case, expected, as_it_stands);
    EXPECT_EQ(ExpectationsIn(expected), ExpectationLines(as_it_stands));
  }
}

TEST(RecipeCases, RepeatNothingOfTheirBases) {
  for (const auto& path : CaseFiles()) {
    const auto repeated = FindRepeated(Folder.string(), ReadText(path.string()));
    ASSERT_TRUE(repeated.ok()) << path << ": " << repeated.error().message;
    EXPECT_EQ(*repeated, "") << path << " gives this key the value that its base gives it";
  }
}

TEST(RecipeCases, PrintedRecipesReadBackTheSame) {
  ForEachSoundCase([](const Recipe& recipe) {
    const std::string printed = PrintRecipe(recipe);
    SourceSet sources;
    Diagnostics diagnostics(&sources);
    const auto second = ReadRecipe("printed.toml", printed, {}, sources, diagnostics);
    ASSERT_TRUE(second.ok()) << RenderText(diagnostics, {}) << printed;
    EXPECT_EQ(ValuesOf(recipe), ValuesOf(*second));
  });
}

TEST(RecipeCases, ResolvedKeysReadBackTheSame) {
  ForEachSoundCase([](const Recipe& recipe) {
    const std::string lines = LinesOfResolvedKeys(recipe);
    SourceSet sources;
    Diagnostics diagnostics(&sources);
    const auto second = ReadRecipe("resolved.toml", lines, {}, sources, diagnostics);
    ASSERT_TRUE(second.ok()) << RenderText(diagnostics, {}) << lines;
    EXPECT_EQ(LinesOfResolvedKeys(*second), lines);
    // Defaults are spelled out now, and nothing else has changed.
    EXPECT_EQ(ValuesOf(*second), ValuesOf(recipe));
  });
}

TEST(RecipeCases, ResolvedKeysHoldDefaultsAndWholeLists) {
  ReadResult result;
  ReadRecipeText(MinimalText(), {"init.rule=[{match=\"*\",value=\"normal(0, 1)\"}, {value=0,match='x'}]"}, result);
  ASSERT_TRUE(result.ok);
  std::map<std::string, std::string> values;
  for (const RecipeEntry& entry : ResolvedKeys(result.recipe)) {
    EXPECT_TRUE(values.emplace(entry.key, entry.value).second) << entry.key;
  }
  EXPECT_EQ(values.at("optimizer.clip_norm"), "1.0");
  EXPECT_EQ(values.at("start.first"), "\"scratch\"");
  EXPECT_EQ(values.at("init.rule"), "[{ match = \"*\", value = \"normal(0, 1)\" }, { match = \"x\", value = 0 }]");
  EXPECT_FALSE(values.contains("checkpoint.dir"));
  EXPECT_FALSE(values.contains("optimizer.group"));
}

TEST(RecipeCases, EveryDiagnosticHasACase) {
  struct Exemption {
    std::string_view name;
    std::string_view reason;
  };
  constexpr Exemption exemptions[] = {
      {"file-unreadable", "no file to hold the case; tests/cli"},
      {"plan-rejected", "a case is a recipe; tests/cli/plan_files.cpp"},
      {"data-too-short", "a case has no token files; tests/cli/data_files.cpp"},
      {"token-file-invalid", "a case has no token files; tests/cli/data_files.cpp"},
      {"token-pattern-unmatched", "a case has no token files; tests/cli/data_files.cpp"},
      {"token-id-invalid", "a case has no token files; tests/cli/data_files.cpp"},
      {"token-file-missing", "cases are checked without files; tests/cli/data_files.cpp"},
      {"recipe-too-large", "a case of 1 MiB; tests/recipe/guards.cpp"},
  };
  std::set<std::string, std::less<>> seen;
  for (const auto& path : CaseFiles()) {
    for (const std::string& line : ExpectationsIn(ReadText(path.string()))) {
      const std::string_view rest = std::string_view(line).substr(line.find(": ") + 2);
      const size_t begin = rest.find(' ') + 1;
      seen.emplace(rest.substr(begin, rest.find(' ', begin) - begin));
    }
  }
  for (const DiagnosticRow& row : DiagnosticRows()) {
    const bool is_exempt = std::any_of(std::begin(exemptions), std::end(exemptions),
                                       [&](const Exemption& exemption) { return exemption.name == row.name; });
    EXPECT_NE(seen.contains(row.name), is_exempt)
        << row.name << (is_exempt ? " has a case, so it needs no exemption" : " has no case in tests/recipe");
  }
}

}  // namespace
}  // namespace shardc
