// Rules of [start]: what a run begins from is one thing; the run id names a directory, given or taken from the recipe's
// file name.

#include <algorithm>

#include "compiler/base/run_id.h"
#include "compiler/check/check_context.h"
#include "compiler/check/expression_place.h"
#include "compiler/recipe/run_id.h"

namespace shardc {

/// Checks the members of the table that says what a run begins from.
static auto CheckFirst(CheckContext& context, const FirstStart& first) -> void {
  const auto refuse = [&](const SourceRange& at, const std::string& why) {
    context.diags().Report(at, DiagnosticKind::StartFirst, why);
  };
  CheckPath(context, first.from().at, first.seed.is_set ? "seed" : "continue", *first.from(), "checkpoint");
  if (first.seed.is_set && first.continued.is_set) {
    refuse(first.continued.at,
           "has `seed` and `continue`; a run begins from one of them: `seed` loads the parameters, "
           "`continue` the moments too");
  }
  if (first.reset.is_set && !first.continued.is_set) {
    refuse(first.reset.at,
           "has `reset`, and a `seed` gives the parameters alone; delete `reset`, or write `continue` "
           "in the place of `seed`");
  }
  if (first.adapter.is_set) {
    CheckPath(context, first.adapter.at, "adapter", *first.adapter, "adapter");
  }
  if (first.adapter.is_set && first.continued.is_set) {
    refuse(
        first.adapter.at,
        "has `continue` and `adapter`, and a stage goes on with the adapters of the one before; delete `adapter`, or "
        "write `seed` in the place of `continue`");
  }
  for (const std::string& word : *first.reset) {
    if (!FromText<StagePart>(word)) {
      const auto& words = EnumNames<StagePart>::names;
      const std::string nearest = ClosestWord(word, {words.begin(), words.end()});
      refuse(PlaceInList(context.diags().sources(), first.reset.at, word),
             fmt::format("has \"{}\" in `reset`{}; the words are moments, schedule and data", word,
                         nearest.empty() ? "" : fmt::format(", which may be meant as \"{}\"", nearest)));
    }
  }
}

auto CheckStart(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  if (const FirstStart& first = *recipe.start.first; first.from().is_set) {
    CheckFirst(context, first);
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
