#include "compiler/passes/fused_adapters.h"

#include <algorithm>
#include <map>

#include "compiler/base/mapped.h"
#include "compiler/base/text/joined.h"
#include "compiler/check/expression_place.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/published_rows.h"
#include "compiler/keys/toml_value.h"

namespace shardc {

/// Returns the modules that classes of a family have.
static auto ModulesOf(std::string_view family) -> std::vector<FusedModule> {
  std::vector<FusedModule> modules = FusedModules();
  std::erase_if(modules, [&](const FusedModule& module) {
    return std::ranges::find(published::ClassRows, module.architecture, &published::ClassRow::name)->family != family;
  });
  return modules;
}

/// Returns the projections of the module in each block.
static auto PartsIn(const ParameterSpecs& specs, const FusedModule& module)
    -> std::map<std::string, std::vector<std::string>> {
  std::map<std::string, std::vector<std::string>> blocks;
  for (const ParameterSpec& spec : specs) {
    const std::string weight = spec.projection.empty() ? "" : FusedWeight({module}, spec.name);
    if (!weight.empty()) {
      blocks[weight].push_back(spec.name);
    }
  }
  return blocks;
}

static auto Described(const AdapterSizes& sizes, const std::string& projection) -> std::string {
  const auto adapter = AdapterOf(sizes, projection);
  return adapter ? fmt::format("{} has rank {} and alpha {}", projection, adapter->rank, adapter->alpha)
                 : projection + " has no adapter";
}

/// Returns why the projections of a module cannot share an A; empty if they can.
static auto FaultOf(const ParameterSpecs& specs, const AdapterSizes& sizes, const FusedModule& module) -> std::string {
  bool has_adapter = false;
  for (const auto& [weight, projections] : PartsIn(specs, module)) {
    const auto first = AdapterOf(sizes, projections.front());
    has_adapter = has_adapter || first;
    for (const std::string& projection : projections) {
      if (AdapterOf(sizes, projection) != first) {
        return fmt::format("{}, and {}", Described(sizes, projections.front()), Described(sizes, projection));
      }
    }
  }
  return has_adapter ? "" : "none of them has an adapter";
}

/// Warns where the base has other modules than those that share an A.
static auto WarnOfModules(const ParameterSpecs& specs, const AdapterSizes& sizes, const PassContext& context) -> void {
  const Manifest& base = context.seed->manifest;
  const AdapterSection& adapter = context.recipe->adapter;
  const auto is_named = [&](const FusedModule& module) {
    return std::ranges::find(sizes.fused, module.name, &FusedModule::name) != sizes.fused.end();
  };
  const std::vector<FusedModule> of_base = FusedModulesOf(base.run_id);
  std::vector<std::string> names;
  std::vector<std::string_view> apart;
  bool adapts_all = true;
  for (const FusedModule& module : of_base) {
    std::vector<bool> adapts;
    for (const auto& [weight, projections] : PartsIn(specs, module)) {
      std::ranges::transform(projections, std::back_inserter(adapts),
                             [&](const std::string& projection) { return AdapterOf(sizes, projection).has_value(); });
    }
    const bool is_adapted = std::ranges::count(adapts, true) > 0;
    if (is_adapted && !is_named(module)) {
      apart.push_back(module.name);
      adapts_all = adapts_all && std::ranges::count(adapts, false) == 0;
    }
    if (is_adapted) {
      names.emplace_back(module.name);
    }
  }
  if (!apart.empty()) {
    context.diags
        ->Build(adapter.kind.at, DiagnosticKind::AdapterModules,
                fmt::format("the projections of its {} have an A each", JoinedByAnd(apart)))
        .Help(fmt::format("to share it as peft does, write into [adapter]: fused = {}{}", WriteToml(names),
                          adapts_all ? "" : ", and name all of their projections in `match`"))
        .Emit();
  }
  for (const FusedModule& module : sizes.fused) {
    if (std::ranges::find(of_base, module.name, &FusedModule::name) == of_base.end()) {
      const std::string name(module.name);
      context.diags->Report(PlaceInList(context.diags->sources(), adapter.fused.at, name),
                            DiagnosticKind::AdapterModules, fmt::format("{} has no {}", base.run_id, name));
    }
  }
}

auto CheckFusedAdapters(const ParameterSpecs& specs, const ModelSizes& sizes, PassContext& context) -> void {
  const Located<std::vector<std::string>>& fused = context.recipe->adapter.fused;
  const std::vector<FusedModule> modules = ModulesOf(sizes.family);
  for (const std::string& name : fused.is_set ? *fused : std::vector<std::string>()) {
    const SourceRange at = PlaceInList(context.diags->sources(), fused.at, name);
    const auto module = std::ranges::find(modules, name, &FusedModule::name);
    if (module == modules.end()) {
      const auto known = Mapped<std::string_view>(modules, &FusedModule::name);
      context.diags->Report(at, DiagnosticKind::AdapterFused, name,
                            known.empty()
                                ? fmt::format("no class of {} has a module of several projections", sizes.family)
                                : fmt::format("it is none of {}", JoinedByAnd(known)));
    } else if (const std::string fault = FaultOf(specs, sizes.adapter, *module); !fault.empty()) {
      context.diags->Report(at, DiagnosticKind::AdapterFused, name, fault);
    }
  }
  if (context.seed != nullptr && context.seed->manifest.published && !context.diags->has_errors()) {
    WarnOfModules(specs, sizes.adapter, context);
  }
}

}  // namespace shardc
