// shardc diff A [B]: what two recipes or plans differ in: the keys, then memory, communication and FLOPs.

#include <memory>

#include "compiler/base/printable.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/report/compare.h"

namespace shardc {

namespace {

struct DiffOptions {
  RecipeOptions recipe;
  std::string other;
  std::string format = "text";
};

}  // namespace

/// The plan of a recipe or of a plan file, as `shardc plan` shows it. Errors: after the diagnostics were printed.
static auto PlanOf(const RecipeOptions& options) -> ErrorOr<Plan> {
  NamedText named = ReadRecipeOrPlan(options.path);
  if (named.is_plan) {
    RETURN_IF_ERROR(RefuseRecipeOptions(options.path, {SetOption(options)}));
    return RecipeSource(options).ReadPlan(*named.text);
  }
  RecipeSource source(options, std::move(named.text), LeftOut::Assume);
  return source.Printed(source.LoadAndCompile({}));
}

static auto RunDiff(const DiffOptions& options) -> ExitCode {
  // --set and --unset change B; where no B is named, B is A with the change.
  RecipeOptions first = options.recipe;
  first.sets.clear();
  first.unsets.clear();
  RecipeOptions second = options.recipe;
  second.path = options.other.empty() ? options.recipe.path : options.other;
  if (options.other.empty() && !SetOption(options.recipe).is_given) {
    return ReportError(Fail(ExitCode::Usage, "diff takes two recipes or plans, or one recipe and --set"));
  }
  const auto a = PlanOf(first);
  if (!a) {
    return ReportError(a.error());
  }
  const auto b = PlanOf(second);
  if (!b) {
    return ReportError(b.error());
  }
  SetCheckContext("comparing plans");
  const Comparison comparison = Compare(Explain(*a), Explain(*b));
  const Status written = WriteResult(options.format == "json" ? RenderComparisonJson(comparison)
                                                              : Printable(RenderComparisonText(comparison)));
  if (!written) {
    return ReportError(written.error());
  }
  return comparison.is_same() ? ExitCode::Ok : ExitCode::Differs;
}

auto DeclareDiff(CommandOptions& options) -> Action {
  const auto values = std::make_shared<DiffOptions>();
  options.Positional("A", values->recipe.path, "a recipe (TOML) or a plan file");
  options.Positional("B", values->other, "another one; default: A with what --set and --unset change, which are of B",
                     false);
  DeclareOverrides(options, values->recipe);
  options.Flag("--strict", values->recipe.is_strict, "treat warnings as errors");
  options.Choice("--color", values->recipe.color, {"auto", "always", "never"}, "colour of messages");
  options.Choice("--format", values->format, {"text", "json"}, "format of the result");
  return [values] { return RunDiff(*values); };
}

}  // namespace shardc
