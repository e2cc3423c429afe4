// What initialises each parameter, with the moments that its values will have, or came to have in a run.
#pragma once

#include <optional>
#include <string>

#include "compiler/plan/init_record.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// The record of a run's start from scratch.
struct RealisedInit {
  /// Path of the file.
  std::string path;
  /// Nothing: the file cannot be read, or belongs to another start, as `reason` says.
  std::optional<InitRecord> record;
  std::string reason;
};

/// Returns the record in a file's text, if it is one of this plan's start.
auto ReadRealisedInit(const std::string& path, std::string_view text, const Plan& plan) -> RealisedInit;

/// Returns one line per parameter: name, shape, rule with everything known put in, mean and standard deviation of the
/// rule (by analysis; for a cut distribution, of what the cut leaves), those that a run realised, and the line and key
/// of the recipe. Requires: pass build has run.
auto RenderInitText(const Plan& plan, const std::optional<RealisedInit>& realised = {}) -> std::string;
/// Returns RenderInitText's table for programs; fields are documented in docs/explain.md.
auto RenderInitJson(const Plan& plan, const std::optional<RealisedInit>& realised = {}) -> std::string;

}  // namespace shardc
