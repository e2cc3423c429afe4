// A recipe that states only what it is about. A line at its head names the recipe that it is put over:
//
//   # base: minimal.toml
//   # base: minimal.toml without init.rule, data.tokens
//
// The base is a whole recipe in the same folder, or in tests/support/bases. Each key of the recipe replaces the key of
// the base, and each list of tables the list of the base. `without` leaves sections, lists or keys of the base out.
// A recipe without such a line is whole, and stays as it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"

namespace shardc {

/// The file and the line that a line of the whole text is from: the recipe, or its base.
struct LineSource {
  bool is_of_base = false;
  int32_t line = 0;
};

struct WholeRecipe {
  /// The recipe with what it takes from its base.
  std::string text;
  /// The file name of the base; empty if the recipe has none.
  std::string base;
  /// One for each line of `text`.
  std::vector<LineSource> sources;

  /// Returns the source of a line of `text`, from 1. A number past the end stands for itself.
  auto SourceOf(int32_t line) const -> LineSource;
};

/// Puts the text of a recipe of `folder` over its base.
/// Requires: header and key stand at the beginning of a line; in the base each value is on one line.
/// Errors: a `# base` line that is not as above, a base that no file has or that has a base itself, a name after
///   `without` that the base lacks, or a base of which nothing is taken.
auto PutOverBase(const std::string& folder, const std::string& text) -> ErrorOr<WholeRecipe>;

/// Returns a key to which the recipe gives the value that the base gives it, without a comment above it; empty if there
/// is no such key. Errors: as PutOverBase.
auto FindRepeated(const std::string& folder, const std::string& text) -> ErrorOr<std::string>;

}  // namespace shardc
