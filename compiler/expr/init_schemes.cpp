#include "compiler/expr/init_schemes.h"

#include <algorithm>

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
#define SCHEME(Name, name, doc) schemes.push_back({name, doc, {}});
#define SCHEME_RULE(globs, value) schemes.back().rules.push_back({SplitAtSpaces(globs), value});
#include "schemas/init_schemes.def"
  return schemes;
}

auto InitSchemes() -> const std::vector<InitScheme>& {
  static const std::vector<InitScheme> schemes = MakeSchemes();
  return schemes;
}

auto InitSchemeNamed(InitSchemeName name) -> const InitScheme& {
  // The same rows make the enumerators.
  return InitSchemes().at(static_cast<size_t>(name));
}

}  // namespace shardc
