// Plans for tests: compiled from small recipes, and edited as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/passes/pipeline.h"
#include "compiler/plan/plan.h"
#include "tests/support/edited.h"

namespace shardc {

/// A two-block Llama on two ranks, two microbatches, evaluation and saves: every section has ops.
auto SampleRecipe() -> std::string_view;

/// Compiles SampleRecipe with `--set` texts. A recipe or plan that is rejected ends the test.
auto CompileSample(const std::vector<std::string>& sets = {}, std::optional<PassKind> stop_after = {}) -> Plan;

/// The first line that contains all of `parts`, without its line end. None: ends the test.
auto LineWith(std::string_view text, const std::vector<std::string>& parts) -> std::string;

}  // namespace shardc
