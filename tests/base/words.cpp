// docs/style.md lists words that this project does not use; the pages and the code hold to the list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "compiler/base/files.h"

namespace shardc {
namespace {

const std::filesystem::path Root = SHARDC_SOURCE_DIR;

auto TextOf(const std::filesystem::path& path) -> std::string {
  auto text = ReadFile(path.string(), size_t{1} << 24);
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? *text : "";
}

/// The words in code type of the list's first column.
auto WordsNotUsed() -> std::set<std::string> {
  const std::string page = TextOf(Root / "docs/style.md");
  const size_t begin = page.find("### Words that are not used\n");
  EXPECT_NE(begin, std::string::npos);
  const size_t end = page.find("\n### ", begin);
  std::set<std::string> words;
  size_t line = page.find("\n| `", begin);
  while (line < end) {
    const std::string cell = page.substr(line + 3, page.find(" |", line + 3) - line - 3);
    for (size_t open = cell.find('`'); open != std::string::npos;) {
      const size_t close = cell.find('`', open + 1);
      words.insert(cell.substr(open + 1, close - open - 1));
      open = cell.find('`', close + 1);
    }
    line = page.find("\n| `", line + 1);
  }
  return words;
}

/// README, docs/ without the list itself, and schemas/.
auto Pages() -> std::vector<std::filesystem::path> {
  std::vector<std::filesystem::path> pages{Root / "README.md"};
  for (const char* folder : {"docs", "docs/decisions", "schemas"}) {
    for (const auto& entry : std::filesystem::directory_iterator(Root / folder)) {
      const auto& path = entry.path();
      if ((path.extension() == ".md" || path.extension() == ".def") && path.filename() != "style.md") {
        pages.push_back(path);
      }
    }
  }
  return pages;
}

/// The code, its tests and their cases, without this file.
auto Sources() -> std::vector<std::filesystem::path> {
  const std::set<std::string> extensions{".h", ".cpp", ".txt", ".toml", ".py"};
  std::vector<std::filesystem::path> sources;
  for (const char* folder : {"compiler", "runtime", "tests", "tools"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(Root / folder)) {
      const auto& path = entry.path();
      if (extensions.contains(path.extension().string()) && path.filename() != "words.cpp") {
        sources.push_back(path);
      }
    }
  }
  return sources;
}

/// "page:line: word" for each word of `text` that is in `words`, in any case.
auto Uses(const std::string& page, const std::string& text, const std::set<std::string>& words)
    -> std::vector<std::string> {
  std::vector<std::string> uses;
  std::string word;
  int line = 1;
  for (const char c : text + "\n") {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (words.contains(word)) {
      uses.push_back(page + ":" + std::to_string(line) + ": " + word);
    }
    word.clear();
    line += c == '\n' ? 1 : 0;
  }
  return uses;
}

TEST(Words, PagesUseNoneOfThoseThatTheStylePageRulesOut) {
  const std::set<std::string> words = WordsNotUsed();
  EXPECT_THAT(words, testing::IsSupersetOf({"anew", "behind", "stretch"}));
  const auto pages = Pages();
  EXPECT_GT(pages.size(), 20U);
  for (const auto& page : pages) {
    EXPECT_THAT(Uses(page.lexically_relative(Root).string(), TextOf(page), words), testing::IsEmpty());
  }
}

TEST(Words, CodeUsesNoneOfThoseThatTheStylePageRulesOut) {
  const std::set<std::string> words = WordsNotUsed();
  const auto sources = Sources();
  EXPECT_GT(sources.size(), 500U);
  for (const auto& source : sources) {
    EXPECT_THAT(Uses(source.lexically_relative(Root).string(), TextOf(source), words), testing::IsEmpty());
  }
}

TEST(Words, AreFoundAsWordsAndNotInsideOfOthers) {
  EXPECT_THAT(Uses("p", "one\ntwo, Anew.\nrenewanewed\nanew", {"anew"}),
              testing::ElementsAre("p:2: anew", "p:4: anew"));
}

}  // namespace
}  // namespace shardc
