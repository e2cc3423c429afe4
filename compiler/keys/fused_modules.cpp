#include "compiler/keys/fused_modules.h"

#include <algorithm>
#include <array>

#include "compiler/base/glob.h"
#include "compiler/base/text/split.h"

namespace shardc {

namespace {

struct Row {
  std::string_view architecture;
  std::string_view part;
  std::string_view rule;
};

constexpr auto Rows = std::to_array<Row>({
#define HF_MADE(Class, parameters, rule) {#Class, parameters, rule},
#include "schemas/hf_config.def"
});

}  // namespace

/// Returns the name in `seed('NAME', ...)`.
static auto TensorOf(std::string_view rule) -> std::string_view { return SplitAt(rule, "'")[1]; }

/// Returns the number of the block in a name; empty for a name without one.
static auto LayerIn(std::string_view name) -> std::string_view {
  const auto parts = SplitAt(name, ".");
  const auto found = std::ranges::find_if(parts, [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  });
  return found == parts.end() ? std::string_view() : *found;
}

/// Returns the part of a module that a projection is, or the end.
static auto FindPart(const FusedModule& module, std::string_view projection) {
  return std::ranges::find_if(module.parts, [&](std::string_view part) { return GlobMatches(part, projection); });
}

/// Returns the module that has a projection, or the end.
static auto ModuleWith(const std::vector<FusedModule>& modules, std::string_view projection) {
  return std::ranges::find_if(
      modules, [&](const FusedModule& module) { return FindPart(module, projection) != module.parts.end(); });
}

auto FusedModules() -> const std::vector<FusedModule>& {
  static const auto modules = [] {
    std::vector<FusedModule> found;
    for (const Row& row : Rows) {
      const std::string_view weight = TensorOf(row.rule);
      if (found.empty() || found.back().weight != weight || found.back().architecture != row.architecture) {
        const auto names = SplitAt(weight, ".");
        found.push_back(
            {.architecture = row.architecture, .name = names[names.size() - 2], .weight = weight, .parts = {}});
      }
      found.back().parts.push_back(row.part);
    }
    // A tensor that is kept transposed, say, is one projection.
    std::erase_if(found, [](const FusedModule& module) { return module.parts.size() < 2; });
    return found;
  }();
  return modules;
}

auto FusedModulesOf(std::string_view architecture) -> std::vector<FusedModule> {
  std::vector<FusedModule> modules = FusedModules();
  std::erase_if(modules, [&](const FusedModule& module) { return module.architecture != architecture; });
  return modules;
}

auto FusedWeight(const std::vector<FusedModule>& modules, std::string_view projection) -> std::string {
  const auto module = ModuleWith(modules, projection);
  if (module == modules.end()) {
    return {};
  }
  constexpr std::string_view Layer = "{layer}";
  std::string weight(module->weight);
  const size_t at = weight.find(Layer);
  return at == std::string::npos ? weight : weight.replace(at, Layer.size(), LayerIn(projection));
}

auto PlaceInModule(const std::vector<FusedModule>& modules, std::string_view projection) -> int64_t {
  const auto module = ModuleWith(modules, projection);
  return module == modules.end() ? 0 : FindPart(*module, projection) - module->parts.begin();
}

}  // namespace shardc
