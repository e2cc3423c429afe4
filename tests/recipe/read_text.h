// Reads recipes from texts, for the tests of the reader.
#pragma once

#include <string>
#include <vector>

#include "compiler/recipe/recipe.h"

namespace shardc {

/// A recipe that has what every recipe needs, with `extra` after it.
auto MinimalText(const std::string& extra = "") -> std::string;

struct ReadResult {
  SourceSet sources;
  Diagnostics diagnostics{&sources};
  bool ok = false;
  Recipe recipe;

  /// "name line:column+length" of each diagnostic, in order of emission.
  auto places() const -> std::vector<std::string>;
};

auto ReadRecipeText(const std::string& text, const std::vector<std::string>& overrides, ReadResult& result) -> void;

}  // namespace shardc
