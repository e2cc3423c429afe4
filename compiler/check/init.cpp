// Rules of [init]: every value is an expression, and what is set is used. Which parameters a pattern matches, and what
// the value is for each, is for the passes to judge: they know the parameters.

#include "compiler/check/check_context.h"
#include "compiler/expr/init_schemes.h"

namespace shardc {

auto CheckInit(CheckContext& context) -> void {
  constexpr std::string_view StdVariable = "init_std";
  const InitSection& init = context.recipe().init;
  bool uses_std = false;
  for (const InitRule& rule : init.rule) {
    if (!context.IsSound(rule.value)) {
      uses_std = true;
      continue;
    }
    const ExprResult<Expr> expr = ParseExpr(rule.value->text, ExprKind::Rule);
    ReportExprErrors(context, rule.value.at, expr.errors);
    // A rule with faults may have meant to.
    uses_std = uses_std || !expr.ok() || UsesVariable(expr.value, StdVariable);
  }
  if (init.scheme.is_set && context.IsSound(init.scheme)) {
    for (const InitSchemeRule& rule : InitSchemeNamed(*init.scheme).rules) {
      uses_std = uses_std || UsesVariable(ParseExpr(rule.value, ExprKind::Rule).value, StdVariable);
    }
  }
  const bool has_rules = !init.rule.empty() || init.scheme.is_set || !init.scheme.is_known;
  if (!has_rules && !context.recipe().start.first->seed.is_set && context.IsRead("init.rule")) {
    context.diags()
        .Build(init.at.valid() ? init.at : SourceRange{0, 0, 0, 1}, DiagnosticKind::InitMissing)
        .Help("[init] scheme = \"torchtitan-llama\" gives every parameter a rule")
        .Emit();
    return;
  }
  if (init.std.is_set && !uses_std && context.IsSound(init.scheme) && context.IsRead("init.rule")) {
    context.diags().Report(
        init.std.at, DiagnosticKind::KeyHasNoEffect, "std",
        fmt::format("no rule{} uses `{}`", init.scheme.is_set ? " and nothing in the scheme" : "", StdVariable));
  }
}

}  // namespace shardc
