// A case of tests/recipe: a recipe whose comments say how it is run and what is expected.
//
//   # run: check --set mesh.dp=3 --strict        (without it: check)
//   # expect: error NAME 12:9 message            directly above the line, or on top if it has none
//   # note: 3:9 text
//   # help: text
#pragma once

#include <string>
#include <vector>

#include "compiler/diag/diagnostics.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

struct RecipeCase {
  std::string name;
  /// The file without its expectations.
  std::string text;
  std::vector<std::string> overrides;
  bool is_strict = false;
};

/// Splits a file into its parts. Quotes, single or double, hold words of the `# run:` line together.
auto ParseCase(const std::string& name, const std::string& file_text) -> RecipeCase;

/// Reads, checks and compiles `text` as the case says. The recipe is set if it could be read.
struct CaseResult {
  SourceSet sources;
  Diagnostics diagnostics{&sources};
  std::string internal_error;
  bool is_read = false;
  Recipe recipe;
};
auto RunCase(const RecipeCase& recipe_case, const std::string& text, CaseResult& result) -> void;

/// The text of the case with what its diagnostics make of expectations put in.
auto WithExpectations(const RecipeCase& recipe_case, const Diagnostics& diagnostics) -> std::string;

/// `# expect`, `# note` and `# help` lines of a file, as the diagnostics of that very file give them.
auto ExpectationLines(const Diagnostics& diagnostics) -> std::vector<std::string>;

}  // namespace shardc
