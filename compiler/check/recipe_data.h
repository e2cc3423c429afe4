// The tokens and targets that a recipe names, as a plan has them.
#pragma once

#include "compiler/data/data_files.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

/// Returns data.tokens or each [[data.source]], with paths as resolved against the recipe's folder. The recipe may have
/// faults: then a key without a value has its default.
auto DataOf(const Recipe& recipe) -> DataSource;

/// Returns the files that a path of the recipe stands for: itself, or if it is a pattern and not the name of a file
/// those that match it, which may be none.
auto FilesOf(const Recipe& recipe, const std::string& path) -> std::vector<std::string>;

/// Returns the head that reads data.targets, and after it each [[loss.head]], as DataOf returns the tokens.
auto HeadsOf(const Recipe& recipe) -> HeadTable;

}  // namespace shardc
