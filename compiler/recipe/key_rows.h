// The tables of recipe keys as data, for spelling help, the checks of single values, the JSON schema and the reference.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/keys/key_values.h"

namespace shardc {

struct RecipeKeyRow {
  std::string section;
  /// Empty for a key of the section itself.
  std::string list;
  std::string name;
  /// As in recipe_keys.def: Int, Real, Text, OneOf<Family>.
  std::string type;
  bool required = false;
  /// False for a key that some optimizers, or families, lack.
  bool is_of_all = true;
  /// In TOML; empty for keys without one.
  std::string default_text;
  std::string doc;

  /// "model.layers", "init.rule.match".
  auto path() const -> std::string;
};

struct RecipeSectionRow {
  std::string section;
  /// Empty for the section itself.
  std::string list;
  std::string doc;
};

struct Choice {
  std::string word;
  /// False for words of the language that this version does not carry out.
  bool accepted = true;
};

/// In the order of schemas/recipe_keys.def.
auto RecipeKeyRows() -> const std::vector<RecipeKeyRow>&;
/// Returns the paths of all keys and lists of sections: "model.layers", "init.rule".
auto KeyPaths() -> std::vector<std::string>;
auto RecipeSectionRows() -> const std::vector<RecipeSectionRow>&;

/// Returns the words of a key by schemas/recipe_values.def; none where its type has none.
auto ChoicesOf(std::string_view path) -> const std::vector<Choice>&;
/// Every path that has a range or words.
auto PathsWithValues() -> std::vector<std::string>;

}  // namespace shardc
