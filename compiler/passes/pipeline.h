// Runs the passes in the order of schemas/passes.def, and does the chores round each: switches, dumps, verification.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/passes/pass.h"

namespace shardc {

struct PipelineOptions {
  std::optional<PassKind> stop_after;
  /// A developer's aid: the plan is stamped as not runnable.
  std::vector<PassKind> disabled;
  /// Where the run keeps what it puts on record; default: as the plan says.
  std::string run_dir;
  /// Judges the plan after each pass. Without it the plan is good for its figures alone.
  bool verify = true;
  /// Called after each pass with the plan so far.
  std::function<void(PassKind, const Plan&)> after_pass;
};

/// Recipe to plan. Requires: the recipe passed CheckRecipe.
/// Errors: a rejected recipe (diagnostics emitted), or an internal fault with the verifier's findings.
auto Compile(const Recipe& recipe, const PipelineOptions& options, Diagnostics& diags) -> ErrorOr<Plan>;

struct PassRow {
  PassKind kind;
  std::string_view name;
  std::string_view doc;
};
auto PassRows() -> const std::vector<PassRow>&;

}  // namespace shardc
