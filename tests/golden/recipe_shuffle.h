// The same recipe, written otherwise.
#pragma once

#include <cstdint>
#include <string>

namespace shardc {

/// Sections and array tables in another order, and so the keys within each; tables of one array keep theirs, as
/// position counts there. Comments and empty lines come and go. The same seed gives the same text.
/// Requires: each key and its value on one line, headers as `[name]` or `[[name]]`.
auto ShuffledRecipe(const std::string& text, uint64_t seed) -> std::string;

}  // namespace shardc
