// Rules of [start]: the run id names a directory, given or taken from the recipe's file name.

#include "compiler/base/run_id.h"
#include "compiler/check/check_context.h"
#include "compiler/recipe/run_id.h"

namespace shardc {

auto CheckStart(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  if (const FirstStart& first = *recipe.start.first; first.seed.is_set) {
    CheckPath(context, first.seed.at, "seed", *first.seed, "checkpoint");
  }
  if (!context.IsSound(recipe.start.run_id)) {
    return;
  }
  const std::string id = RunIdOf(recipe);
  if (IsRunId(id)) {
    return;
  }
  const Located<std::string>& run_id = recipe.start.run_id;
  const SourceRange at = run_id.is_set ? run_id.at : SourceRange{0, 0, 0, 1};
  auto builder = context.diags().Build(at, DiagnosticKind::RunIdInvalid, id);
  if (!run_id.is_set) {
    builder.Help("set run_id in [start]; without it, the id is the recipe's file name without its extension");
  }
  builder.Emit();
}

}  // namespace shardc
