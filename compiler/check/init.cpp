// Rules of [init]: every value is an expression, and what is set is used. Which parameters a pattern matches, and what
// the value is for each, is for the passes to judge: they know the parameters.

#include "compiler/check/check_context.h"
#include "compiler/recipe/owned_keys.h"

namespace shardc {

auto CheckInit(CheckContext& context) -> void {
  const InitSection& init = context.recipe().init;
  bool are_sound = !init.scheme.is_set || context.IsSound(init.scheme);
  for (const InitRule& rule : init.rule) {
    if (context.IsSound(rule.value)) {
      ReportExprErrors(context, rule.value.at, ParseExpr(rule.value->text, ExprKind::Rule).errors);
    } else {
      are_sound = false;
    }
  }
  const bool has_rules = !init.rule.empty() || init.scheme.is_set || !init.scheme.is_known;
  if (!has_rules && !context.recipe().start.first->from().is_set && context.IsRead("init.rule")) {
    context.diags()
        .Build(init.at.valid() ? init.at : SourceRange{0, 0, 0, 1}, DiagnosticKind::InitMissing)
        .Help("[init] scheme = \"torchtitan-llama\" gives every parameter a rule")
        .Emit();
    return;
  }
  if (init.std.is_set && are_sound && context.IsSound(init.scheme) && context.IsRead("init.rule") &&
      !UsesStd(context.recipe())) {
    context.diags().Report(
        init.std.at, DiagnosticKind::KeyHasNoEffect, "std",
        fmt::format("no rule{} uses `init_std`", init.scheme.is_set ? " and nothing in the scheme" : ""));
  }
}

}  // namespace shardc
