// 1. match the recipe's rules with the parameters' names; then the scheme's with those that are left
// 2. report the parameters without a rule, and rules without a parameter
// 3. evaluate each rule for each of its parameters, from the logical shape: fans are those of the unsharded matrix

#include "compiler/passes/init_values.h"

#include <algorithm>
#include <set>

#include "compiler/check/expression_place.h"
#include "compiler/expr/expr.h"
#include "compiler/expr/init_schemes.h"
#include "compiler/passes/match_names.h"
#include "compiler/recipe/glob.h"

namespace shardc {

namespace {

/// Of the recipe or of a scheme.
struct Rule {
  Expr expr;
  /// What faults and origins point at: the rule's value, or the key that names the scheme.
  SourceRange at;
  Origin origin;
  bool is_of_scheme = false;
};

auto ParsedRule(std::string_view text) -> Expr {
  auto parsed = ParseExpr(text, ExprKind::Rule);
  CHECK(parsed.ok(), "the rule `{}` came this far", text);
  return std::move(parsed.value);
}

/// Parameters without a rule, in one diagnostic: the first few names and how many there are.
auto ReportMissing(const std::vector<size_t>& chosen, const std::vector<ParameterSpec>& specs, const SourceRange& at,
                   Diagnostics& diags) -> void {
  constexpr size_t MostNamed = 3;
  std::vector<std::string> names;
  size_t missing = 0;
  for (size_t s = 0; s < specs.size(); ++s) {
    if (chosen[s] == NoRule && ++missing <= MostNamed) {
      names.push_back(specs[s].name);
    }
  }
  if (missing > MostNamed) {
    names.push_back(fmt::format("{} more", missing - MostNamed));
  }
  if (missing > 0) {
    diags.Build(at, DiagnosticKind::InitRuleMissing, fmt::format("{}", fmt::join(names, ", "))).Emit();
  }
}

/// Gives each parameter without a rule the scheme's; its rules go behind those in `rules`.
auto ApplyScheme(const Located<std::string>& key, const std::vector<ParameterSpec>& specs, std::vector<size_t>& chosen,
                 std::vector<Rule>& rules, Diagnostics& diags) -> void {
  bool is_used = false;
  for (const InitSchemeRule& row : InitSchemeNamed(*key).rules) {
    const auto matches = [&](const ParameterSpec& spec) {
      return std::any_of(row.globs.begin(), row.globs.end(),
                         [&](std::string_view glob) { return GlobMatches(glob, spec.name); });
    };
    for (size_t s = 0; s < specs.size(); ++s) {
      if (chosen[s] == NoRule && matches(specs[s])) {
        chosen[s] = rules.size();
        is_used = true;
      }
    }
    rules.push_back({ParsedRule(row.value), key.at, OriginOf(key, "init.scheme"), true});
  }
  if (!is_used) {
    diags.Build(key.at, DiagnosticKind::KeyHasNoEffect, "scheme", "an [[init.rule]] matches every parameter").Emit();
  }
}

/// What rules know of the model alone.
auto ModelVariables(const ModelSizes& sizes, double init_std) -> ExprVariables {
  const auto as_double = [](int64_t n) { return static_cast<double>(n); };
  return {{"layers", as_double(sizes.layers)},
          {"hidden", as_double(sizes.hidden)},
          {"heads", as_double(sizes.heads)},
          {"kv_heads", as_double(sizes.kv_heads)},
          {"head_dim", as_double(sizes.head_dim)},
          {"ffn", as_double(sizes.ffn)},
          {"vocab", as_double(sizes.vocab)},
          {"seq", as_double(sizes.seq)},
          {"init_std", init_std}};
}

/// What they know of one parameter. Fans are those of a matrix [out, in]; a vector has its length for both.
auto SetParameterVariables(const ParameterSpec& spec, ExprVariables& variables) -> void {
  CHECK(spec.shape.size() == 1 || spec.shape.size() == 2, "{} has {} dims", spec.name, spec.shape.size());
  double numel = 1;
  for (const int64_t dim : spec.shape) {
    numel *= static_cast<double>(dim);
  }
  variables["numel"] = numel;
  variables["num_dims"] = static_cast<double>(spec.shape.size());
  variables["fan_in"] = static_cast<double>(spec.shape.back());
  variables["fan_out"] = static_cast<double>(spec.shape.front());
  if (spec.layer >= 0) {
    variables["layer"] = static_cast<double>(spec.layer);
  } else {
    variables.erase("layer");
  }
}

}  // namespace

auto ChooseInitValues(const std::vector<ParameterSpec>& specs, const ModelSizes& sizes, PassContext& context)
    -> std::vector<InitValue> {
  const InitSection& init = context.recipe->init;
  Diagnostics& diags = *context.diags;
  std::vector<std::string_view> names;
  for (const ParameterSpec& spec : specs) {
    names.push_back(spec.name);
  }
  std::vector<size_t> chosen = MatchNames(
      PatternsOf(init.rule), names,
      {.duplicate = DiagnosticKind::InitRuleDuplicate, .unused = DiagnosticKind::InitRuleUnused, .noun = "parameter"},
      diags);
  std::vector<Rule> rules;
  for (const InitRule& rule : init.rule) {
    rules.push_back({ParsedRule(rule.value->text), rule.value.at, OriginOf(rule.value, "init.rule"), false});
  }
  if (init.scheme.is_set) {
    ApplyScheme(init.scheme, specs, chosen, rules, diags);
  }
  ReportMissing(chosen, specs, init.at, diags);
  if (diags.has_errors()) {
    return {};
  }

  ExprVariables variables = ModelVariables(sizes, *init.std);
  std::vector<InitValue> values(specs.size());
  // A rule that has no value somewhere is reported for the first such parameter.
  std::set<size_t> failed;
  for (size_t s = 0; s < specs.size(); ++s) {
    if (failed.contains(chosen[s])) {
      continue;
    }
    const Rule& rule = rules[chosen[s]];
    SetParameterVariables(specs[s], variables);
    const auto result = EvaluateRule(rule.expr, variables);
    if (result.ok()) {
      values[s] = {ToText(result.value), rule.origin};
      continue;
    }
    failed.insert(chosen[s]);
    const ExprError& error = result.errors.front();
    const SourceRange place =
        rule.is_of_scheme ? rule.at : PlaceInValue(diags.sources(), rule.at, error.column, error.length);
    diags.Build(place, DiagnosticKind::InitValueDomain, specs[s].name, error.message).Emit();
  }
  return values;
}

}  // namespace shardc
