#include "compiler/expr/init_schemes.h"

#include <algorithm>

#include "compiler/base/check.h"

namespace shardc {

static auto SplitAtSpaces(std::string_view text) -> std::vector<std::string_view> {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    words.push_back(text.substr(0, text.find(' ')));
    text.remove_prefix(std::min(text.size(), words.back().size() + 1));
  }
  return words;
}

static auto MakeSchemes() -> std::vector<InitScheme> {
  std::vector<InitScheme> schemes;
#define SCHEME(name, doc) schemes.push_back({name, doc, {}});
#define SCHEME_RULE(globs, value) schemes.back().rules.push_back({SplitAtSpaces(globs), value});
#include "schemas/init_schemes.def"
  return schemes;
}

auto InitSchemes() -> const std::vector<InitScheme>& {
  static const std::vector<InitScheme> schemes = MakeSchemes();
  return schemes;
}

auto InitSchemeNamed(std::string_view name) -> const InitScheme& {
  const auto found = std::find_if(InitSchemes().begin(), InitSchemes().end(),
                                  [&](const InitScheme& scheme) { return scheme.name == name; });
  CHECK(found != InitSchemes().end(), "no scheme is called {}", name);
  return *found;
}

}  // namespace shardc
