#include "compiler/keys/key_values.h"

#include <functional>
#include <map>

#include "compiler/base/check.h"

namespace shardc {

using Ranges = std::map<std::string, ValueRange, std::less<>>;

static auto MakeRanges() -> Ranges {
  Ranges ranges;
#define RANGE(path, low, high) ranges[path] = {static_cast<double>(low), static_cast<double>(high), #low, #high};
#include "schemas/recipe_values.def"
  return ranges;
}

static auto AllRanges() -> const Ranges& {
  static const Ranges ranges = MakeRanges();
  return ranges;
}

auto RangeOf(std::string_view path) -> std::optional<ValueRange> {
  const auto found = AllRanges().find(path);
  return found == AllRanges().end() ? std::nullopt : std::optional(found->second);
}

auto PathsWithRanges() -> std::vector<std::string> {
  std::vector<std::string> paths;
  for (const auto& [path, range] : AllRanges()) {
    paths.push_back(path);
  }
  return paths;
}

auto DescribeType(std::string_view type) -> std::string_view {
  struct Row {
    std::string_view type;
    std::string_view text;
  };
  constexpr Row rows[] = {
      {"Int", "a whole number"},
      {"Real", "a number"},
      {"Bool", "true or false"},
      {"Text", "text in quotes"},
      {"Texts", "a list of texts"},
      {"Ints", "a list of whole numbers"},
      {"Reals", "a list of numbers"},
      {"Formula", "a number, or an expression in quotes"},
      {"ByteSize", "0, or a size in quotes, such as \"4 GiB\""},
      {"Condition", "true, false, or a condition in quotes"},
      {"FirstStart", "\"scratch\", or a table, { seed = \"...\" } or { continue = \"...\" }"},
  };
  const std::string_view plain = IsOneOf(type) ? "Text" : type;
  for (const Row& row : rows) {
    if (row.type == plain) {
      return row.text;
    }
  }
  CHECK(false, "type {}", type);
}

}  // namespace shardc
