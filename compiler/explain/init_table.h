// What initialises each parameter, with the moments that its values will have, or came to have in a run.
#pragma once

#include <optional>
#include <string>

#include "compiler/plan/init_record.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// What a run put on record when it started from scratch.
struct RealisedInit {
  /// Of the file.
  std::string path;
  /// Nothing: the file cannot be read, or belongs to another start, as `reason` says.
  std::optional<InitRecord> record;
  std::string reason;
};

/// The record in a file's text, if it is one of this plan's start.
auto ReadRealisedInit(const std::string& path, std::string_view text, const Plan& plan) -> RealisedInit;

/// One line a parameter: name, shape, rule with everything known put in, mean and standard deviation of what is drawn
/// (by analysis; what is left of a cut distribution), those that came of it in a run, and the line and key of the
/// recipe that say so. Requires: pass build has run.
auto RenderInitText(const Plan& plan, const std::optional<RealisedInit>& realised = {}) -> std::string;
/// The same for programs; fields are documented in docs/explain.md.
auto RenderInitJson(const Plan& plan, const std::optional<RealisedInit>& realised = {}) -> std::string;

}  // namespace shardc
