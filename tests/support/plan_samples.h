// Plans for tests: compiled from small recipes, and edited as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/passes/pipeline.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// A two-block Llama on two ranks, two microbatches, evaluation and saves: every section has ops.
auto SampleRecipe() -> std::string_view;

/// Compiles SampleRecipe with `--set` texts. A recipe or plan that is rejected ends the test.
auto CompileSample(const std::vector<std::string>& sets = {}, std::optional<PassKind> stop_after = {}) -> Plan;

using Edits = std::vector<std::pair<std::string, std::string>>;
/// `text` with each first text replaced by the second, once each. A text that is not there ends the test.
auto Edited(std::string text, const Edits& edits) -> std::string;

/// The first line that contains all of `parts`, without its line end. None: ends the test.
auto LineWith(std::string_view text, const std::vector<std::string>& parts) -> std::string;

}  // namespace shardc
