// Cross-key rules: whatever a recipe can get wrong that one key alone does not show. One file per section.
#pragma once

#include <string>
#include <vector>

#include "compiler/check/file_checks.h"
#include "compiler/data/scan.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

/// Reports every fault of a recipe, which may have been read in part; nothing that depends on a faulty value is
/// reported. Diagnostics::num_waiting counts the rules that could not be judged for that.
auto CheckRecipe(const Recipe& recipe, Diagnostics& diagnostics, FileChecks files = FileChecks::None) -> void;

struct ReadOptions {
  FileChecks files = FileChecks::None;
  LeftOut left_out = LeftOut::Refuse;
  /// Number of hosts of the launch; 1: as the recipe says.
  int64_t num_hosts = 1;
  /// The recipe that this one was resolved from; empty if this one is as it was written.
  std::string resolved_from = {};
};

/// Reads and checks: the faults of both stages are reported at once. The passes match patterns, and report theirs.
/// Errors: ExitCode::RecipeRejected, after diagnostics.
auto ReadAndCheck(const std::string& path, std::string text, const std::vector<std::string>& overrides,
                  SourceSet& sources, Diagnostics& diagnostics, const ReadOptions& options = {}) -> ErrorOr<Recipe>;

/// Looks at every id of the files: reports the first of each list that lies outside of its vocabulary, and files that
/// are not here. Requires: CheckRecipe passed.
auto ScanDataFiles(const Recipe& recipe, Diagnostics& diagnostics, const ScanOptions& options) -> void;

/// The three batch sizes, from the two given. Requires: CheckRecipe passed.
struct BatchSizes {
  int64_t global = 0;
  int64_t micro = 0;
  int64_t accumulate = 0;
};
auto ResolveBatch(const Recipe& recipe) -> BatchSizes;

}  // namespace shardc
