// Every recipe of tests/recipe gives exactly the diagnostics that it says, and every diagnostic has such a recipe.
// SHARDC_UPDATE_GOLDENS=1 rewrites the expectations.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "compiler/recipe/resolved.h"
#include "compiler/recipe/write.h"
#include "tests/recipe/case_file.h"
#include "tests/recipe/read_text.h"
#include "tests/support/temporary_folder.h"

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

auto IsUpdating() -> bool {
  const char* value = std::getenv("SHARDC_UPDATE_GOLDENS");
  return value != nullptr && std::string_view(value) == "1";
}

auto ExpectationsIn(const std::string& text) -> std::vector<std::string> {
  std::vector<std::string> lines;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.starts_with("# expect: ") || line.starts_with("# note: ") || line.starts_with("# help: ")) {
      lines.push_back(line);
    }
    begin = end + 1;
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
    const std::string expected = WithExpectations(recipe_case, result.diagnostics);
    if (IsUpdating() && expected != file_text) {
      WriteText(path.string(), expected);
      continue;
    }
    EXPECT_EQ(file_text, expected) << "to accept: SHARDC_UPDATE_GOLDENS=1, then look at the diff";
    // The places as they are in the file, not as the insertion computed them.
    CaseResult as_it_stands;
    RunCase(recipe_case, file_text, as_it_stands);
    EXPECT_EQ(ExpectationsIn(file_text), ExpectationLines(as_it_stands.diagnostics));
  }
}

TEST(RecipeCases, PrintedRecipesReadBackTheSame) {
  for (const auto& path : CaseFiles()) {
    SCOPED_TRACE(path.filename().string());
    const RecipeCase recipe_case = ParseCase(path.filename().string(), ReadText(path.string()));
    CaseResult first;
    RunCase(recipe_case, recipe_case.text, first);
    if (!first.is_read) {
      continue;
    }
    const std::string printed = PrintRecipe(first.recipe);
    SourceSet sources;
    Diagnostics diagnostics(&sources);
    auto second = ReadRecipe("printed.toml", printed, {}, sources, diagnostics);
    ASSERT_TRUE(second.ok()) << RenderText(diagnostics, {}) << printed;
    // Up to the comments, which say where the values come from.
    const auto without_comments = [](std::string text) {
      std::string result;
      for (size_t begin = 0; begin < text.size();) {
        const size_t end = text.find('\n', begin);
        const std::string line = text.substr(begin, end - begin);
        result += line.substr(0, line.rfind("  # ")) + "\n";
        begin = end + 1;
      }
      return result;
    };
    EXPECT_EQ(without_comments(printed), without_comments(PrintRecipe(*second)));
  }
}

TEST(RecipeCases, ResolvedKeysReadBackTheSame) {
  for (const auto& path : CaseFiles()) {
    SCOPED_TRACE(path.filename().string());
    const RecipeCase recipe_case = ParseCase(path.filename().string(), ReadText(path.string()));
    CaseResult first;
    RunCase(recipe_case, recipe_case.text, first);
    if (!first.is_read) {
      continue;
    }
    const auto lines_of = [](const Recipe& recipe) {
      std::string lines;
      for (const RecipeEntry& entry : ResolvedKeys(recipe)) {
        lines += fmt::format("{} = {}\n", entry.key, entry.value);
      }
      return lines;
    };
    const std::string lines = lines_of(first.recipe);
    SourceSet sources;
    Diagnostics diagnostics(&sources);
    auto second = ReadRecipe("resolved.toml", lines, {}, sources, diagnostics);
    ASSERT_TRUE(second.ok()) << RenderText(diagnostics, {}) << lines;
    EXPECT_EQ(lines_of(*second), lines);
    // Defaults are spelled out now, and nothing else has changed.
    const auto values_of = [](const Recipe& recipe) {
      std::string text = PrintRecipe(recipe);
      std::string values;
      for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
        const std::string line = text.substr(begin, text.find('\n', begin) - begin);
        values += line.substr(0, line.rfind("  # ")) + "\n";
      }
      return values;
    };
    EXPECT_EQ(values_of(*second), values_of(first.recipe));
  }
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
