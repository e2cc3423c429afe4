// Which names a pattern that matches none was probably meant for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardc {

/// Returns the names in their order, those of all blocks as one with `*` for the number.
auto FoldedNames(const std::vector<std::string_view>& names) -> std::vector<std::string>;

/// Returns up to `most` of the names, those of all blocks as one with `*` for the number, the likeliest first; an empty
/// list if nothing is alike. Parts between dots are compared, and those that torchtitan and llama call otherwise under
/// our name.
auto NearestNames(std::string_view pattern, const std::vector<std::string_view>& names, size_t most)
    -> std::vector<std::string>;

}  // namespace shardc
