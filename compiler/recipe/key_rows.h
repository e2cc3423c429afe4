// The tables of recipe keys as data, for spelling help, the checks of single values, the JSON schema and the reference.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

struct ValueRange {
  double low = 0;
  double high = 0;
  /// As in the row: whole numbers keep all their digits.
  std::string low_text;
  std::string high_text;
};

struct Choice {
  std::string word;
  /// False for words of the language that this version does not carry out.
  bool accepted = true;
};

/// In the order of schemas/recipe_keys.def.
auto RecipeKeyRows() -> const std::vector<RecipeKeyRow>&;
auto RecipeSectionRows() -> const std::vector<RecipeSectionRow>&;

/// What schemas/recipe_values.def says of a key: nothing where it has no range, no words where its type has none.
auto RangeOf(std::string_view path) -> std::optional<ValueRange>;
auto ChoicesOf(std::string_view path) -> const std::vector<Choice>&;
/// Every path that has a range or words.
auto PathsWithValues() -> std::vector<std::string>;

/// Is the type that of a word of a set?
inline auto IsOneOf(std::string_view type) -> bool { return type.starts_with("OneOf<"); }
/// "a whole number", "true or false": what a key of this type takes.
auto DescribeType(std::string_view type) -> std::string_view;

}  // namespace shardc
