// A golden case: a recipe whose comments say what of its plan is recorded, in files beside it.
//
//   # run: plan --emit=plan,explain --section=step --stop-after=schedule --set mesh.dp=3     in PlanCaseFolders
//   # run: pass --section=step                                                             in tests/passes/PASS
//   # same-plan-as: other.toml
//   # like: other.toml
//   # explain: batch, memory per rank, FSDP units
//   # json: /memory/peak_bytes = 6880
//
// `plan` records NAME.plan (one section, or all; after one pass, or after the last), NAME.explain and NAME.explain.json
// (of the finished plan, whatever --stop-after says); without --emit nothing. `pass` records NAME.diff: what the pass
// of the folder's name changes in the plan.
// With `like`, a case of tests/plan records NAME.plan.diff in place of NAME.plan: the difference from the plan of the
// other case, which prints the same section after the same pass.
// With `explain`, NAME.explain holds only the parts of the report that begin with one of the words of the line: what
// the case is about. A part begins at a line without indentation, or with the head of a list ("alive there").
// A line `json` holds one value of the report as JSON, by its JSON pointer: NAME.toml itself is among the files that
// the case records. A recipe may be put over a base (tests/support/over_base.h). An op that the base made has the line
// of the base. Plans stand here without the scratch of kernels (without_scratch.h), reports without the hash of the
// plan.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/passes/pipeline.h"
#include "compiler/plan/text.h"
#include "tests/support/over_base.h"

namespace shardc {

/// Where cases lie that `plan` prints: those made for tests, and published recipes.
inline constexpr std::string_view PublishedFolder = "recipes/published";
inline constexpr std::array PlanCaseFolders{std::string_view("tests/plan"), PublishedFolder};

struct GoldenCase {
  /// "plan_fsdp_two_ranks", "schedule_one_block": what `tools/dev goldens` takes.
  std::string name;
  /// Relative to the repository, so that no machine's paths get into plans.
  std::string folder;
  std::string stem;
  WholeRecipe recipe;
  /// The fault of the `# run:`, `# explain:` or `# base:` line, or empty.
  std::string fault;

  std::vector<std::string> emit;
  std::optional<PassKind> stop_after;
  std::optional<SectionKind> section;
  std::vector<std::string> overrides;
  /// Set for cases of tests/passes.
  std::optional<PassKind> pass;
  std::string same_plan_as;
  std::string like;
  /// How the recorded parts of the report begin; empty if the report is recorded whole.
  std::vector<std::string> report_parts;

  auto recipe_path() const -> std::string { return folder + "/" + stem + ".toml"; }
};

/// How a failing test names its case.
inline auto PrintTo(const GoldenCase& golden, std::ostream* out) -> void { *out << golden.recipe_path(); }

/// All cases, by name. A recipe without a `# run:` line is one with a fault.
auto GoldenCases() -> std::vector<GoldenCase>;

/// Reads a recipe of the repository, with what it takes from its base. Requires: recipe and base are there.
auto ReadRecipeFile(const std::string& path) -> std::string;

using AfterPass = std::function<void(PassKind, const Plan&)>;

/// Reads, checks and compiles a recipe. The error has the diagnostics in its text.
auto CompileText(const std::string& path, const std::string& text, const std::vector<std::string>& overrides = {},
                 const AfterPass& after_pass = {}) -> ErrorOr<Plan>;

/// Compiles a recipe of the repository.
auto CompileRecipeFile(const std::string& path, const std::vector<std::string>& overrides = {}) -> ErrorOr<Plan>;

struct GoldenFile {
  std::string text;
  /// If the file is a difference between plans: the plans.
  std::string before = {};
  std::string after = {};
};

/// Returns what a case records, by file name relative to its folder.
auto GoldenFilesOf(const GoldenCase& golden) -> ErrorOr<std::map<std::string, GoldenFile>>;

}  // namespace shardc
