// What to write into start.first where a seed has not what the run's parameters are loaded from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/checkpoint/manifest.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

/// Returns "missing = [...]" with the globs that are there, unless they match nothing, and those of more names.
auto ListWith(std::string_view key, const Located<std::vector<std::string>>& there,
              const std::vector<std::string_view>& more, const std::vector<std::string_view>& names) -> std::string;

/// Returns what to write so that these parameters begin by their init rules. What the seed has under their names is
/// left there: it would be an error of its own.
auto HelpOnNotLoaded(const std::vector<std::string_view>& not_loaded, const std::vector<std::string_view>& names,
                     const Manifest& manifest, const FirstStart& first) -> std::string;

}  // namespace shardc
