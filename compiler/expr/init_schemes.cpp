#include "compiler/expr/init_schemes.h"

namespace shardc {

static auto MakeSchemes() -> std::vector<InitScheme> {
  using enum ParameterKind;
  std::vector<InitScheme> schemes;
#define KINDS(...) \
  { __VA_ARGS__ }
#define SCHEME(Name, name, doc) schemes.push_back({name, doc, {}});
#define SCHEME_RULE(kinds, value) schemes.back().rules.push_back({kinds, value});
#include "schemas/init_schemes.def"
#undef KINDS
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
