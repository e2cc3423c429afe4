#include "compiler/passes/declare_parameters.h"

#include <algorithm>

#include "compiler/base/mapped.h"
#include "compiler/ops/emitter.h"
#include "compiler/passes/choose_units.h"
#include "compiler/passes/init_values.h"
#include "compiler/start/match_names.h"

namespace shardc {

/// Returns which parameters `optimizer.frozen` matches.
static auto MatchFrozen(const OptimizerSection& optimizer, const std::vector<std::string_view>& names,
                        Diagnostics& diags) -> std::vector<bool> {
  const auto patterns = Mapped<NamePattern>(*optimizer.frozen, [&](const std::string& glob) {
    return NamePattern{glob, optimizer.frozen.at, 0};
  });
  // One rule has all the patterns: nothing is matched twice.
  const auto rules = MatchNames(
      patterns, names,
      {.duplicate = DiagnosticKind::FrozenUnused, .unused = DiagnosticKind::FrozenUnused, .noun = "parameter"}, diags);
  auto frozen = Mapped<bool>(rules, [](const size_t rule) { return rule != NoRule; });
  if (std::count(frozen.begin(), frozen.end(), false) == 0) {
    diags.Report(optimizer.frozen.at, DiagnosticKind::FrozenAll, names.size());
  }
  return frozen;
}

auto DeclareParameters(Plan& plan, const ModelFamily& family, const ModelSizes& sizes, PassContext& context)
    -> ErrorOr<std::unordered_map<std::string, ValueId>> {
  const Recipe& recipe = *context.recipe;
  Diagnostics& diags = *context.diags;
  const ParameterSpecs specs = ParametersOf(family, sizes);

  const auto names = Mapped<std::string_view>(specs, &ParameterSpec::name);
  const auto [init_values, uses] = ChooseInitValues(specs, sizes, context);
  const auto group_of = MatchNames(
      PatternsOf(recipe.optimizer.group), names,
      {.duplicate = DiagnosticKind::GroupDuplicate, .unused = DiagnosticKind::GroupUnused, .noun = "parameter"}, diags);
  const auto frozen = MatchFrozen(recipe.optimizer, names, diags);
  if (diags.has_errors()) {
    return Rejected();
  }

  if (context.seed != nullptr) {
    plan.seed = SeedOf(*context.seed, uses);
  }
  // Group 0 is what no [[optimizer.group]] matches.
  plan.groups.Add({.name = "default", .weight_decay = *recipe.optimizer.weight_decay, .lr_scale = 1});
  for (const GroupRule& group : recipe.optimizer.group) {
    plan.groups.Add({.name = *group.match,
                     .weight_decay = group.weight_decay.is_set ? *group.weight_decay : *recipe.optimizer.weight_decay,
                     .lr_scale = *group.lr_scale});
  }

  for (size_t s = 0; s < specs.size(); ++s) {
    const ParameterSpec& spec = specs[s];
    // An axis of one rank cuts nothing.
    Placements placement = spec.placement;
    SetPlacement(AxisSet::All().Without(Spread(plan.mesh, AxisSet::All())), Placement{}, placement);
    plan.parameters.Add({.name = spec.name,
                         .shape = spec.shape,
                         .dtype = DType::F32,
                         .layer = spec.layer,
                         .trainable = !frozen[s],
                         .placement = placement,
                         .group = GroupId{group_of[s] == NoRule ? 0 : static_cast<int32_t>(group_of[s]) + 1},
                         .init = init_values[s].text,
                         .init_origin = init_values[s].origin});
  }
  if (context.seed != nullptr) {
    ContinueSeed(*context.seed, recipe, plan, diags);
  }
  if (diags.has_errors()) {
    return Rejected();
  }
  ASSIGN_OR_RETURN(const auto units, ChooseUnits(plan, context));
  std::unordered_map<ParameterId, DType> computes;
  for (const UnitChoice& unit : units) {
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
    const ValueId full =
        emitter.New({computes.at(id), parameter.shape}, Category::Parameters, parameter.name, Arena::Persistent);
    plan.values[full].role = ValueRole::Of(id);
    full_values[parameter.name] = full;
  }
  return full_values;
}

}  // namespace shardc
