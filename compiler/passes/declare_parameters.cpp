#include "compiler/passes/declare_parameters.h"

#include <algorithm>
#include <set>

#include "compiler/expr/expr.h"
#include "compiler/ops/emitter.h"
#include "compiler/passes/choose_units.h"
#include "compiler/passes/match_names.h"

namespace shardc {

/// Parameters without a rule, in one diagnostic: the first few names and how many there are.
static auto ReportMissing(const std::vector<size_t>& chosen, const std::vector<ParameterSpec>& specs,
                          const SourceRange& at, Diagnostics& diags) -> void {
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

/// A rule with everything known of one parameter put in: "normal(0, 0.02)". Fans are those of the logical matrix
/// [out, in]; a vector has its length for both. A rule that has no value somewhere is reported for the first such
/// parameter: `failed` remembers.
static auto InitTextOf(const Expr& expr, const InitRule& rule, const ParameterSpec& spec, const ModelSizes& sizes,
                       std::set<const InitRule*>& failed, Diagnostics& diags) -> std::string {
  const auto as_double = [](int64_t n) { return static_cast<double>(n); };
  const ExprVariables variables{{"layer", as_double(spec.layer)},
                                {"layers", as_double(sizes.layers)},
                                {"hidden", as_double(sizes.hidden)},
                                {"fan_in", as_double(spec.shape.back())},
                                {"fan_out", as_double(spec.shape.front())}};
  const auto result = EvaluateRule(expr, variables);
  if (!result.ok()) {
    if (!failed.insert(&rule).second) {
      return {};
    }
    diags.Build(rule.value.at, DiagnosticKind::InitValueDomain, spec.name, result.errors.front().message).Emit();
    return {};
  }
  return ToText(result.value);
}

/// Which parameters `optimizer.frozen` matches.
static auto MatchFrozen(const OptimizerSection& optimizer, const std::vector<std::string_view>& names,
                        Diagnostics& diags) -> std::vector<bool> {
  std::vector<NamePattern> patterns;
  for (const std::string& glob : *optimizer.frozen) {
    patterns.push_back({glob, optimizer.frozen.at, 0});
  }
  // One rule has all the patterns: nothing is matched twice.
  const auto rules = MatchNames(
      patterns, names,
      {.duplicate = DiagnosticKind::FrozenUnused, .unused = DiagnosticKind::FrozenUnused, .noun = "parameter"}, diags);
  std::vector<bool> frozen;
  for (const size_t rule : rules) {
    frozen.push_back(rule != NoRule);
  }
  if (std::count(frozen.begin(), frozen.end(), false) == 0) {
    diags.Build(optimizer.frozen.at, DiagnosticKind::FrozenAll, names.size()).Emit();
  }
  return frozen;
}

auto DeclareParameters(Plan& plan, const ModelFamily& family, const ModelSizes& sizes, PassContext& context)
    -> ErrorOr<std::unordered_map<std::string, ValueId>> {
  const Recipe& recipe = *context.recipe;
  Diagnostics& diags = *context.diags;
  const std::vector<ParameterSpec> specs = family.parameters(sizes);

  std::vector<std::string_view> names;
  for (const ParameterSpec& spec : specs) {
    names.push_back(spec.name);
  }
  const auto rule_of = MatchNames(
      PatternsOf(recipe.init.rule), names,
      {.duplicate = DiagnosticKind::InitRuleDuplicate, .unused = DiagnosticKind::InitRuleUnused, .noun = "parameter"},
      diags);
  ReportMissing(rule_of, specs, recipe.init.at, diags);
  const auto group_of = MatchNames(
      PatternsOf(recipe.optimizer.group), names,
      {.duplicate = DiagnosticKind::GroupDuplicate, .unused = DiagnosticKind::GroupUnused, .noun = "parameter"}, diags);
  const auto frozen = MatchFrozen(recipe.optimizer, names, diags);
  if (diags.has_errors()) {
    return Rejected();
  }

  // Group 0 is what no [[optimizer.group]] matches.
  plan.groups.Add({.name = "default", .weight_decay = *recipe.optimizer.weight_decay, .lr_scale = 1});
  for (const GroupRule& group : recipe.optimizer.group) {
    plan.groups.Add({.name = *group.match,
                     .weight_decay = group.weight_decay.is_set ? *group.weight_decay : *recipe.optimizer.weight_decay,
                     .lr_scale = *group.lr_scale});
  }

  std::vector<Expr> exprs;
  for (const InitRule& rule : recipe.init.rule) {
    auto parsed = ParseExpr(rule.value->text, ExprKind::Rule);
    CHECK(parsed.ok(), "check let the rule `{}` pass", rule.value->text);
    exprs.push_back(std::move(parsed.value));
  }
  std::set<const InitRule*> failed;
  for (size_t s = 0; s < specs.size(); ++s) {
    const ParameterSpec& spec = specs[s];
    const InitRule& rule = recipe.init.rule[rule_of[s]];
    plan.parameters.Add({.name = spec.name,
                         .shape = spec.shape,
                         .dtype = DType::F32,
                         .layer = spec.layer,
                         .trainable = !frozen[s],
                         .tp_dim = plan.mesh.size(Axis::Tp) > 1 ? spec.tp_dim : -1,
                         .group = GroupId{group_of[s] == NoRule ? 0 : static_cast<int32_t>(group_of[s]) + 1},
                         .init = InitTextOf(exprs[rule_of[s]], rule, spec, sizes, failed, diags),
                         .init_origin = OriginOf(rule.value, "init.rule")});
  }
  if (diags.has_errors()) {
    return Rejected();
  }
  const auto units = ChooseUnits(plan, context);
  if (!units) {
    return units.error();
  }
  std::unordered_map<ParameterId, DType> computes;
  for (const UnitChoice& unit : *units) {
    for (const ParameterId id : unit.parameters) {
      computes[id] = unit.compute;
      plan.parameters[id].dtype = unit.master;
    }
  }
  std::vector<Op> none;
  Emitter emitter(&plan, &none, PassKind::Build);
  std::unordered_map<std::string, ValueId> full_values;
  for (const ParameterId id : plan.parameters.ids()) {
    const Parameter& parameter = plan.parameters[id];
    full_values[parameter.name] =
        emitter.New({computes.at(id), parameter.shape}, Category::Parameters, parameter.name, Arena::Persistent);
  }
  return full_values;
}

}  // namespace shardc
