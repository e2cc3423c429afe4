// Rules of [init]: every value is an expression. Which parameters a pattern matches, and what the value is for each, is
// for the passes to judge: they know the parameters.

#include "compiler/check/check_context.h"

namespace shardc {

auto CheckInit(CheckContext& context) -> void {
  for (const InitRule& rule : context.recipe().init.rule) {
    ReportExprErrors(context, rule.value.at, ParseExpr(rule.value->text, ExprKind::Rule).errors);
  }
}

}  // namespace shardc
