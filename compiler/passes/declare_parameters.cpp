#include "compiler/passes/declare_parameters.h"

#include <algorithm>
#include <map>

#include "compiler/base/glob.h"
#include "compiler/base/mapped.h"
#include "compiler/base/text/joined.h"
#include "compiler/check/expression_place.h"
#include "compiler/keys/adapters.h"
#include "compiler/ops/emitter.h"
#include "compiler/passes/choose_units.h"
#include "compiler/passes/fused_adapters.h"
#include "compiler/passes/init_values.h"
#include "compiler/plan/init_rule.h"
#include "compiler/start/match_names.h"

namespace shardc {

/// Returns, for each name, true if a glob of the list matches it. Reports globs that match no name.
static auto MatchedBy(const Located<std::vector<std::string>>& globs, const std::vector<std::string_view>& names,
                      DiagnosticKind unused, Diagnostics& diags) -> std::vector<bool> {
  const auto patterns = Mapped<NamePattern>(*globs, [&](const std::string& glob) {
    return NamePattern{glob, globs.at, 0};
  });
  // One rule has all the patterns: nothing is matched twice.
  const auto rules = MatchNames(patterns, names, {.duplicate = unused, .unused = unused, .noun = "parameter"}, diags);
  return Mapped<bool>(rules, [](const size_t rule) { return rule != NoRule; });
}

/// Returns which parameters `optimizer.frozen` matches.
static auto MatchFrozen(const OptimizerSection& optimizer, const std::vector<std::string_view>& names,
                        Diagnostics& diags) -> std::vector<bool> {
  auto frozen = MatchedBy(optimizer.frozen, names, DiagnosticKind::FrozenUnused, diags);
  if (std::count(frozen.begin(), frozen.end(), false) == 0) {
    diags.Report(optimizer.frozen.at, DiagnosticKind::FrozenAll, names.size());
  }
  return frozen;
}

/// Checks that each glob of `match` names projections alone, and that each adapter has no more rows than its
/// projection.
static auto CheckAdapters(const AdapterSection& adapter, const ParameterSpecs& specs, Diagnostics& diags) -> void {
  std::vector<std::string_view> of_model;
  std::vector<std::string_view> adapted;
  std::map<std::string_view, const ParameterSpec*> spec_of;
  for (const ParameterSpec& spec : specs) {
    spec_of[spec.name] = &spec;
    if (AdaptedBy(spec.name).empty()) {
      of_model.push_back(spec.name);
    } else if (spec.name.ends_with(UpSuffix)) {
      adapted.push_back(spec_of.find(AdaptedBy(spec.name))->first);
    }
  }
  if (adapter.match.is_set) {
    const auto matched = MatchedBy(adapter.match, of_model, DiagnosticKind::AdapterUnused, diags);
    std::vector<std::string_view> others;
    for (size_t i = 0; i < of_model.size(); ++i) {
      if (matched[i] && spec_of.at(of_model[i])->projection.empty()) {
        others.push_back(of_model[i]);
      }
    }
    if (!others.empty()) {
      diags.Report(adapter.match.at, DiagnosticKind::AdapterTarget, Listed(others, 3, ", ", ", "));
    }
  }
  if (adapted.empty() && !adapter.match.is_set) {
    diags.Report(adapter.kind.at, DiagnosticKind::AdapterUnused, "*_proj.weight");
  }
  const auto overrides = MatchNames(PatternsOf(adapter.override), adapted,
                                    {.duplicate = DiagnosticKind::AdapterDuplicate,
                                     .unused = DiagnosticKind::AdapterUnused,
                                     .noun = "adapted projection"},
                                    diags);
  for (size_t i = 0; i < adapted.size(); ++i) {
    const Dims& shape = spec_of.at(adapted[i])->shape;
    const int64_t rank = spec_of.at(AdapterParameter(adapted[i], UpSuffix))->shape[1];
    if (rank > std::min(shape[0], shape[1])) {
      const Located<int64_t>* const own = overrides[i] == NoRule ? nullptr : &adapter.override[overrides[i]].rank;
      diags.Report(own != nullptr && own->is_set ? own->at : adapter.rank.at, DiagnosticKind::AdapterRank, rank,
                   adapted[i], ToText(shape));
      return;
    }
  }
}

/// Returns which parameters are frozen: in a run of adapters, all but these and those of `train_also`.
static auto ChooseFrozen(const Recipe& recipe, const ParameterSpecs& specs, const std::vector<std::string_view>& names,
                         Diagnostics& diags) -> std::vector<bool> {
  const AdapterSection& adapter = recipe.adapter;
  if (!adapter.kind.is_set) {
    return MatchFrozen(recipe.optimizer, names, diags);
  }
  CheckAdapters(adapter, specs, diags);
  std::vector<bool> frozen(names.size(), true);
  if (adapter.train_also.is_set) {
    frozen = MatchedBy(adapter.train_also, names, DiagnosticKind::AdapterUnused, diags);
    frozen.flip();
  }
  for (size_t s = 0; s < names.size(); ++s) {
    frozen[s] = frozen[s] && AdaptedBy(names[s]).empty();
  }
  return frozen;
}

/// Warns of globs whose parameters are frozen, and of those of train_also that name adapters alone: these are trained
/// anyway.
static auto WarnOfNoEffect(const Recipe& recipe, const std::vector<std::string_view>& names,
                           const std::vector<size_t>& group_of, const std::vector<bool>& frozen, Diagnostics& diags)
    -> void {
  const auto& groups = recipe.optimizer.group;
  for (size_t g = 0; g < groups.size(); ++g) {
    bool has_trained = false;
    bool has_frozen = false;
    for (size_t s = 0; s < names.size(); ++s) {
      has_trained = has_trained || (group_of[s] == g && !frozen[s]);
      has_frozen = has_frozen || (group_of[s] == g && frozen[s]);
    }
    if (has_frozen && !has_trained) {
      diags.Report(groups[g].match.at, DiagnosticKind::KeyHasNoEffect, "match",
                   "all parameters that it matches are frozen");
    }
  }
  const Located<std::vector<std::string>>& also = recipe.adapter.train_also;
  for (const std::string& glob : *also) {
    if (std::ranges::none_of(
            names, [&](std::string_view name) { return AdaptedBy(name).empty() && GlobMatches(glob, name); })) {
      diags.Report(PlaceInList(diags.sources(), also.at, glob), DiagnosticKind::KeyHasNoEffect, "train_also",
                   fmt::format("\"{}\" matches adapters alone, which are trained anyway", glob));
    }
  }
}

/// Returns true for a parameter whose bits stay in the files of a base as long as these are there: those of the seed,
/// or of the seed's own base. A stage before may be removed, so nothing is left to it.
static auto IsLeftToBase(const SeedCheckpoint& seed, const Plan& plan, const Parameter& parameter) -> bool {
  return seed.manifest.base ? seed.manifest.tensors.at(*LoadedTensorOf(parameter)).in_base.has_value()
                            : !plan.seed.continues();
}

auto DeclareParameters(Plan& plan, const ModelFamily& family, const ModelSizes& sizes, PassContext& context)
    -> ErrorOr<std::unordered_map<std::string, ValueId>> {
  const Recipe& recipe = *context.recipe;
  Diagnostics& diags = *context.diags;
  const ParameterSpecs specs = ParametersOf(family, sizes);

  const auto names = Mapped<std::string_view>(specs, &ParameterSpec::name);
  CheckFusedAdapters(specs, sizes, context);
  // B of a module that has all of its projections is loaded as one tensor.
  if (diags.has_errors()) {
    return Rejected();
  }
  const auto [init_values, uses] = ChooseInitValues(specs, sizes, context);
  const auto group_of = MatchNames(
      PatternsOf(recipe.optimizer.group), names,
      {.duplicate = DiagnosticKind::GroupDuplicate, .unused = DiagnosticKind::GroupUnused, .noun = "parameter"}, diags);
  const auto frozen = ChooseFrozen(recipe, specs, names, diags);
  if (diags.has_errors()) {
    return Rejected();
  }
  WarnOfNoEffect(recipe, names, group_of, frozen, diags);

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
      plan.parameters[id].dtype = plan.parameters[id].trainable ? unit.master : unit.frozen;
    }
  }
  if (recipe.adapter.kind.is_set && context.seed != nullptr) {
    for (Parameter& parameter : plan.parameters) {
      parameter.in_base = RowInBase(plan, parameter) && IsLeftToBase(*context.seed, plan, parameter);
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
