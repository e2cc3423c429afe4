// The rule of model.rope_frequency: a formula that has a frequency for every pair, which turns no position beyond the
// angles that have sines.

#include "compiler/check/rope_frequency.h"

#include "compiler/check/check_context.h"
#include "compiler/expr/rotary.h"
#include "compiler/recipe/resolved.h"

namespace shardc {

auto ReduceRopeFrequency(const Recipe& recipe) -> ExprResult<Expr> {
  const ModelSizes sizes = ResolveModel(recipe);
  const auto as_double = [](int64_t n) { return static_cast<double>(n); };
  const ExprVariables variables{{"layers", as_double(sizes.layers)},     {"hidden", as_double(sizes.hidden)},
                                {"heads", as_double(sizes.heads)},       {"kv_heads", as_double(sizes.kv_heads)},
                                {"head_dim", as_double(sizes.head_dim)}, {"seq", as_double(sizes.seq)},
                                {"rope_theta", sizes.rope_theta}};
  const ExprResult<Expr> expr = ParseExpr(recipe.model.rope_frequency->text, ExprKind::Frequency);
  CHECK(expr.ok(), "the frequency `{}` does not parse after the check", recipe.model.rope_frequency->text);
  return ReduceRule(expr.value, variables);
}

auto CheckRopeFrequency(CheckContext& context) -> void {
  const ModelSection& model = context.recipe().model;
  const Located<Formula>& frequency = model.rope_frequency;
  if (!context.IsSound(frequency)) {
    return;
  }
  const ExprResult<Expr> expr = ParseExpr(frequency->text, ExprKind::Frequency);
  if (!expr.ok()) {
    ReportExprErrors(context, frequency.at, expr.errors);
    return;
  }
  const bool is_set = model.rope_theta.is_set && context.recipe().StandInAt(model.rope_theta.at) == nullptr;
  if (is_set && !UsesVariable(expr.value, "rope_theta")) {
    context.diags()
        .Build(model.rope_theta.at, DiagnosticKind::KeyHasNoEffect, "rope_theta",
               fmt::format("`{}` does not use it", "rope_frequency"))
        .Note(frequency.at, fmt::format("`{}` set here", "rope_frequency"))
        .Emit();
  }
  if (!context.IsSound(model.layers, model.hidden, model.heads, model.kv_heads, model.head_dim, model.seq,
                       model.rope_theta)) {
    return;
  }
  const ExprResult<Expr> reduced = ReduceRopeFrequency(context.recipe());
  if (!reduced.ok()) {
    ReportExprErrors(context, frequency.at, reduced.errors);
    return;
  }
  const ModelSizes sizes = ResolveModel(context.recipe());
  const std::string fault = RotaryFault(reduced.value, sizes.head_dim / 2, sizes.seq);
  if (!fault.empty()) {
    // A frequency that holds its default has no place in the text: point at rope_theta, from which it is computed.
    context.diags().Report(frequency.is_set ? frequency.at : model.rope_theta.at, DiagnosticKind::RopeFrequency, fault);
  }
}

}  // namespace shardc
