// Globs of a recipe against the names of what a plan has: which rule applies to which name, and what is wrong with
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/diag/diagnostics.h"

namespace shardc {

/// A glob as written in the recipe, and the rule that it stands in.
struct NamePattern {
  std::string_view glob;
  SourceRange at;
  size_t rule = 0;
};

constexpr size_t NoRule = static_cast<size_t>(-1);

/// How to speak of one kind of rules.
struct MatchMessages {
  /// The fault of two rules for one name: takes the name and both globs.
  DiagnosticKind duplicate;
  /// The fault of a glob for no name: takes the glob.
  DiagnosticKind unused;
  /// The noun for what has the names: "parameter".
  std::string_view noun;
  /// Are there few enough to list them, where none is spelled nearly like an unused glob?
  bool lists_names = false;
};

/// Returns the rule that applies to each name, or NoRule. An exact name beats patterns; two rules of equal rank that
/// both match a name are `duplicate`, a glob that matches no name is `unused`.
auto MatchNames(const std::vector<NamePattern>& patterns, const std::vector<std::string_view>& names,
                const MatchMessages& messages, Diagnostics& diags) -> std::vector<size_t>;

/// Returns globs that match the wanted ones of the names and no other, few of them: "model.layers.2.*".
auto GlobsOf(const std::vector<std::string_view>& wanted, const std::vector<std::string_view>& names)
    -> std::vector<std::string>;

/// Returns the patterns of rules that have one glob each, `match`.
template <class Rule>
auto PatternsOf(const std::vector<Rule>& rules) -> std::vector<NamePattern> {
  std::vector<NamePattern> patterns;
  for (size_t r = 0; r < rules.size(); ++r) {
    patterns.push_back({*rules[r].match, rules[r].match.at, r});
  }
  return patterns;
}

}  // namespace shardc
