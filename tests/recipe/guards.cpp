// Hostile texts: each ends in a diagnostic with a place, soon, and on an ordinary stack.

#include <gtest/gtest.h>

#include <chrono>

#include "tests/recipe/read_text.h"

namespace shardc {
namespace {

auto Repeated(const std::string& part, size_t count) -> std::string {
  std::string text;
  text.reserve(part.size() * count);
  for (size_t i = 0; i < count; ++i) {
    text += part;
  }
  return text;
}

TEST(Guards, HostileTextsAreRefused) {
  struct Case {
    std::string what;
    std::string text;
    std::string place;
  };
  const Case cases[] = {
      {"2 MiB", Repeated("# a comment\n", 200000), "recipe-too-large 0:0+1"},
      {"a long line", "\n# " + std::string(70000, 'x'), "recipe-too-large 2:1+1"},
      {"a dotted key of 30,000 segments", Repeated("a.", 29999) + "a = 1", "key-too-deep 1:1+1"},
      {"70,000 segments over lines", "[" + Repeated("a .", 17) + "\n" + Repeated("a.", 8), "key-too-deep 1:2+1"},
      {"a header of 20,000 segments", "[" + Repeated("a.", 19999) + "a]", "key-too-deep 1:2+1"},
      {"a deep key in an inline table", "a = {" + Repeated("b.", 20) + "b = 1}", "key-too-deep 1:6+1"},
      {"a deep key after a string", "a = \"\\\"#\"\n" + Repeated("b.", 20) + "b = 1", "key-too-deep 2:1+1"},
      {"NUL", std::string("a = 1\nb\0 = 2", 12), "toml-syntax 2:2+1"},
      {"bad UTF-8", "a = \"\xff\"", "toml-syntax 1:5+1"},
      {"a lone surrogate", "a = \"\\ud800\"", "toml-syntax 1:12+1"},
      {"nested arrays", "a = " + std::string(30000, '['), "value-too-deep 1:516+1"},
      {"2^63", "a = 9223372036854775808", "toml-syntax 1:24+1"},
      {"1e400", "a = 1e400", "toml-syntax 1:10+1"},
      {"a header without a key", "[.]", "toml-syntax 1:2+1"},
      {"an array header without a key", "[[=", "toml-syntax 1:3+1"},
      {"unclosed string", "a = \"x", "toml-syntax 1:7+1"},
  };
  for (const Case& c : cases) {
    ReadResult result;
    ReadRecipeText(c.text, {}, result);
    EXPECT_EQ(result.places(), std::vector<std::string>{c.place}) << c.what;
  }
}

TEST(Guards, DotsElsewhereAreNoSegments) {
  ReadResult result;
  const std::string dots = Repeated(".", 100);
  ReadRecipeText(MinimalText("# " + dots + "\n[start]\nrun_id = \"" + dots + "\"\n[checkpoint]\ndir = '''\n" + dots +
                             "'''\n[data2]\nx = [" + Repeated("1.5, ", 1000) + "]\n"),
                 {}, result);
  EXPECT_EQ(result.places(), (std::vector<std::string>{"unknown-section 26:2+5", "unknown-key 27:1+1"}));
}

TEST(Guards, ManyKeysTakeLittleTime) {
  std::string text = MinimalText("[run]\n");
  for (int i = 0; i < 20000; ++i) {
    text += fmt::format("k{} = 1\n", i);
  }
  const auto start = std::chrono::steady_clock::now();
  ReadResult result;
  ReadRecipeText(text, {}, result);
  EXPECT_EQ(result.places().size(), 20000U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace shardc
