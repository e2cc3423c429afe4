// Names that differ by the number of a block alone are told once, with their numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

/// Returns "0 ... 30", "0, 2, 4, ... 30", "0, 1, 5 ... 9"; after a few pieces "... (of 17)". Requires: ascending.
auto FoldNumbers(const std::vector<int64_t>& numbers) -> std::string;

/// A name by the first of its parts that is a number: "model.layers.3.mlp" is "model.layers.*.mlp" and 3, and
/// "layers.4-5" is "layers.*-*" and 4. The whole name and no number where no part is one.
struct NumberedName {
  std::string pattern;
  std::optional<int64_t> number;
};
auto Numbered(std::string_view name) -> NumberedName;

/// Returns "layers.0 ... 30", "layers.0, 2, 4, ... 30", "head". Requires: the names are alike but for their numbers,
/// which ascend.
auto FoldNames(const std::vector<std::string>& names) -> std::string;

}  // namespace shardc
