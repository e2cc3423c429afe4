// The values that single keys accept, by their types and the rows of schemas/recipe_values.def.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

struct ValueRange {
  double low = 0;
  double high = 0;
  /// As in the row: whole numbers keep all their digits.
  std::string low_text;
  std::string high_text;

  /// Returns false for NaN too.
  auto Holds(double value) const -> bool { return value >= low && value <= high; }
};

/// Returns the range of a key, "model.layers"; nothing if it has none.
auto RangeOf(std::string_view path) -> std::optional<ValueRange>;
/// Returns the paths of all keys that have a range.
auto PathsWithRanges() -> std::vector<std::string>;

/// Returns true for the type of a word of a set.
inline auto IsOneOf(std::string_view type) -> bool { return type.starts_with("OneOf<"); }
/// Returns what a key of this type takes: "a whole number", "true or false".
auto DescribeType(std::string_view type) -> std::string_view;

}  // namespace shardc
