// Modules of classes of transformers that are several projections in one: their weights lie one after another along the
// outputs. The rows HF_MADE of schemas/hf_config.def say which these are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

struct FusedModule {
  /// The class that has it.
  std::string_view architecture;
  /// "qkv_proj".
  std::string_view name;
  /// "model.layers.{layer}.self_attn.qkv_proj.weight".
  std::string_view weight;
  /// Globs over the weights of its projections, in the order of its outputs.
  std::vector<std::string_view> parts;
};

/// Returns all of them, in the order of the table.
auto FusedModules() -> const std::vector<FusedModule>&;

/// Returns those of a class.
auto FusedModulesOf(std::string_view architecture) -> std::vector<FusedModule>;

/// Returns "model.layers.3.self_attn.qkv_proj.weight" for "model.layers.3.self_attn.k_proj.weight", if one of the
/// modules has that; else an empty text.
auto FusedWeight(const std::vector<FusedModule>& modules, std::string_view projection) -> std::string;

/// Returns the place of a projection among the parts of the module that has it, of several modules; 0 if none has it.
auto PlaceInModule(const std::vector<FusedModule>& modules, std::string_view projection) -> int64_t;

}  // namespace shardc
