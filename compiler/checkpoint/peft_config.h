// adapter_config.json of the package peft: which modules of a model have an adapter, of which rank and scale. Each key
// is a row of schemas/peft_config.def: read, or refused if A and B alone are then not what was trained, or without
// effect on them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/checkpoint/module_pattern.h"
#include "compiler/keys/adapters.h"

namespace shardc {

constexpr const char* PeftConfigName = "adapter_config.json";

/// Modules that a configuration names: by a pattern of the whole name, or by ends of names.
struct ModuleChoice {
  std::optional<ModulePattern> pattern;
  std::vector<std::string> names;

  auto Has(std::string_view module) const -> bool;
};

struct PeftConfig {
  int64_t rank = 0;
  double alpha = 0;
  /// The scale is alpha / sqrt(rank), and alpha / rank else.
  bool scales_by_root = false;
  /// Ranks and alphas of some modules: the first pattern that matches holds.
  std::vector<std::pair<ModulePattern, double>> ranks;
  std::vector<std::pair<ModulePattern, double>> alphas;
  /// All linear modules but the head.
  bool targets_all = false;
  ModuleChoice targets;
  ModuleChoice excluded;
  /// Set if only some layers have adapters: their numbers, and the names before a number, by default all.
  std::optional<std::vector<int64_t>> layers;
  std::vector<std::string> layer_names;
  /// The keys that were read, with their values in JSON.
  std::map<std::string, std::string> read;

  /// Returns the adapter of a module, "model.layers.0.self_attn.q_proj"; nothing if it has none.
  auto AdapterOf(std::string_view module) const -> std::optional<LowRank>;
};

/// Errors: ExitCode::Checkpoint, with the key, its value and what to do.
auto ReadPeftConfig(std::string_view text) -> ErrorOr<PeftConfig>;

/// Returns a text that reads as what was read.
auto PeftConfigText(const std::map<std::string, std::string>& read) -> std::string;

}  // namespace shardc
