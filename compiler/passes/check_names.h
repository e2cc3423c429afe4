// The patterns of a recipe that is rejected for something else: whether its globs match names of the model and of
// units, and whether its init rules have values, is known without the rest of it.
#pragma once

#include <string>
#include <vector>

#include "compiler/check/check_recipe.h"
#include "compiler/passes/pipeline.h"

namespace shardc {

struct ReadOptions {
  FileChecks files = FileChecks::None;
  LeftOut left_out = LeftOut::Refuse;
  /// Of the launch; 1: as the recipe says.
  int64_t num_hosts = 1;
};

/// Reads and checks: every fault is reported at once, whatever stage finds it, those of ReportNameFaults among them. A
/// fault that follows from another is held back; Diagnostics::num_waiting counts the rules that could not be judged.
/// Errors: ExitCode::RecipeRejected, after diagnostics.
auto ReadAndCheck(const std::string& path, std::string text, const std::vector<std::string>& overrides,
                  SourceSet& sources, Diagnostics& diags, const ReadOptions& options = {}) -> ErrorOr<Recipe>;

/// Reports, of a recipe that has faults, those of its patterns and init rules that `diags` does not have yet. Requires:
/// the family and all sizes of the model are sound.
auto ReportNameFaults(const Recipe& recipe, Diagnostics& diags) -> void;

}  // namespace shardc
