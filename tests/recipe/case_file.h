// A case of tests/recipe: a recipe whose comments say how it is run and what is expected.
//
//   # run: check --set mesh.dp=3 --strict        (without it: check)
//   # expect: error NAME 12:9 message            directly above the line, or on top if it has none
//   # note: 3:9 text
//   # help: text
//
// The recipe may be put over a base (tests/support/over_base.h). A place in the base is written with the file of the
// base, as minimal.toml:3:9.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/diag/diagnostics.h"
#include "compiler/recipe/recipe.h"
#include "tests/support/over_base.h"

namespace shardc {

struct RecipeCase {
  std::string name;
  /// The file without its expectations.
  std::string text;
  std::vector<std::string> overrides;
  bool is_strict = false;
};

/// Returns true for `# expect`, `# note` and `# help` lines.
auto IsExpectation(std::string_view line) -> bool;

/// Splits a file into its parts. Quotes, single or double, hold words of the `# run:` line together.
auto ParseCase(const std::string& name, const std::string& file_text) -> RecipeCase;

/// Puts `text` over its base, and reads, checks and compiles it as the case says. The recipe is set if it could be
/// read.
struct CaseResult {
  WholeRecipe whole;
  SourceSet sources;
  Diagnostics diagnostics{&sources};
  std::string internal_error;
  bool is_read = false;
  Recipe recipe;
};
auto RunCase(const RecipeCase& recipe_case, const std::string& text, CaseResult& result) -> void;

/// Returns the text of the case with the expectations that its diagnostics make.
auto WithExpectations(const RecipeCase& recipe_case, const CaseResult& result) -> std::string;

/// Returns the `# expect`, `# note` and `# help` lines of a file, as the diagnostics of that very file give them.
auto ExpectationLines(const CaseResult& result) -> std::vector<std::string>;

}  // namespace shardc
