// Sets of init rules that a recipe may name, from the rows of schemas/init_schemes.def.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/base/parameter_kind.h"
#include "compiler/base/recipe_words.h"

namespace shardc {

struct InitSchemeRule {
  std::vector<ParameterKind> kinds;
  /// An expression of the kind Rule.
  std::string_view value;
};

struct InitScheme {
  std::string_view name;
  std::string_view doc;
  std::vector<InitSchemeRule> rules;
};

auto InitSchemes() -> const std::vector<InitScheme>&;

auto InitSchemeNamed(InitSchemeName name) -> const InitScheme&;

}  // namespace shardc
