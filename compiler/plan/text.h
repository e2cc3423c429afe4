// The text form of a plan: a versioned format, one thing a line, that parses back to an equal plan. Its grammar is in
// schemas/plan_format.md; which fields an op line has comes from the rows of schemas/ops.def.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/base/error_or.h"
#include "compiler/plan/names.h"
#include "compiler/plan/plan.h"

namespace shardc {

struct PrintOptions {
  /// Only this section, with the buffers and values that its ops name. Such a text is for reading: it does not parse.
  std::optional<SectionKind> section = {};
  /// Trailing comments with the recipe line and the pass of each op.
  bool origins = true;
  /// File names, directories and `--set` texts: everything that does not change what is computed.
  bool paths = true;
  /// The recipe that the plan was made from; goes only where paths go.
  bool recipe = true;
};

auto PrintPlan(const Plan& plan, const PrintOptions& options = {}) -> std::string;

/// Returns one op as its line in the plan, without indentation and line end.
auto PrintOp(const Op& op, const PlanNames& names, bool origin = false) -> std::string;
/// Returns the line of one op alone. It works out the names of the whole plan for it.
inline auto PrintOp(const Op& op, const Plan& plan, bool origin = false) -> std::string {
  return PrintOp(op, PlanNames(plan), origin);
}

/// Bytes of a value in a line `recipe`; the next lines of the same key have the rest. Escapes make at most four bytes
/// of one, and a line takes eight times as many.
constexpr size_t RecipeLineBytes = size_t{8} << 10;

/// Plans are shorter than this.
constexpr size_t MaxPlanBytes = size_t{96} << 20;

/// Reads the text form. The result names what stands in it and has bounded counts, nothing more: VerifyPlan judges it.
/// Errors: the first fault, as `LINE:COLUMN: fact` (ExitCode::RecipeRejected). A caller that knows the file puts its
/// name before.
auto ParsePlan(std::string_view text) -> ErrorOr<Plan>;

/// Returns 32 hex digits: XXH3-128 of the text without origins and paths. Equal hashes run the same program.
auto PlanHash(const Plan& plan) -> std::string;

/// Returns the content as JSON; field names are those of the text form.
auto PlanJson(const Plan& plan) -> std::string;
/// Returns the JSON Schema to which every PlanJson keeps.
auto PlanSchema() -> std::string;

}  // namespace shardc
