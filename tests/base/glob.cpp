// Patterns over parameter names.

#include "compiler/base/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace shardc {
namespace {

TEST(Glob, Matches) {
  struct Case {
    std::string_view pattern;
    std::string_view name;
    bool matches;
  };
  constexpr Case cases[] = {
      {"", "", true},
      {"", "a", false},
      {"*", "", true},
      {"*", "a.b.c", true},
      {"**", "a", true},
      {"?", "a", true},
      {"?", "", false},
      {"?", "ab", false},
      {"a", "a", true},
      {"a", "A", false},
      {"a*", "abc", true},
      {"*c", "abc", true},
      {"*b*", "abc", true},
      {"a?c", "abc", true},
      {"a?c", "ac", false},
      {"*.weight", "model.norm.weight", true},
      {"*.weight", "model.norm.weights", false},
      {"*norm*", "model.layers.0.input_layernorm.weight", true},
      {"model.layers.?.*", "model.layers.12.mlp", false},
      {"a*b*c", "aXbXbXc", true},
      {"a*b*c", "aXbXbX", false},
      {"*ab", "aab", true},
      {"[a]", "a", false},
      {"[a]", "[a]", true},
      {"a.b", "aXb", false},
      {"\\*", "\\x", true},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(GlobMatches(c.pattern, c.name), c.matches) << c.pattern << " on " << c.name;
  }
}

TEST(Glob, ManyStarsTakeNoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) {
    pattern += "*a";
  }
  const std::string name(5000, 'a');
  EXPECT_TRUE(GlobMatches(pattern, name));
  EXPECT_FALSE(GlobMatches(pattern + "b", name));
}

TEST(Glob, ExactNames) {
  EXPECT_TRUE(IsExactName("model.norm.weight"));
  EXPECT_FALSE(IsExactName("model.*"));
  EXPECT_FALSE(IsExactName("model.?"));
}

}  // namespace
}  // namespace shardc
