// Low-rank adapters of projections, as the keys of [adapter] give them: a projection x W^T becomes
// x W^T + scale (x A^T) B^T. The projections of a fused module share one A.
//
// Source: Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models"; Kalajdzievski 2023, "A Rank
// Stabilization Scaling Factor for Fine-Tuning with LoRA"; names, shapes and initial values as huggingface/peft has
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/keys/fused_modules.h"
#include "compiler/keys/plan_keys.h"

namespace shardc {

/// The end of the names of A [rank, inputs], and its initial values.
inline constexpr std::string_view DownSuffix = ".lora_A.weight";
inline constexpr std::string_view DownInit = "kaiming_uniform(sqrt(5))";
/// The end of the names of B [outputs, rank], and its initial values.
inline constexpr std::string_view UpSuffix = ".lora_B.weight";
inline constexpr std::string_view UpInit = "0";

/// Returns "layers.0.self_attn.q_proj.lora_A.weight" for "layers.0.self_attn.q_proj.weight" and DownSuffix. Requires:
/// the name ends in ".weight".
auto AdapterParameter(std::string_view weight, std::string_view suffix) -> std::string;

/// Returns the name of the projection of whose adapter a parameter is, for a shared A that of the fused module; empty
/// for one that is of no adapter.
auto AdaptedBy(std::string_view parameter) -> std::string;

struct AdapterSizes {
  struct Override {
    std::string match;
    /// 0 where it is that of all.
    int64_t rank = 0;
    double alpha = 0;
  };
  /// Globs over names of projections; empty where there are no adapters.
  std::vector<std::string> match;
  int64_t rank = 0;
  double alpha = 0;
  /// The scale is alpha / sqrt(rank), and alpha / rank else.
  bool scales_by_root = false;
  std::vector<Override> overrides;
  /// Modules whose projections share one A.
  std::vector<FusedModule> fused;
};

/// Returns the adapters with their defaults worked out.
auto ResolveAdapters(const PlanKeys& keys) -> AdapterSizes;

struct LowRank {
  int64_t rank = 0;
  double alpha = 0;
  double scale = 0;

  friend auto operator==(const LowRank&, const LowRank&) -> bool = default;
};

/// Returns the name of the A of a projection: its own, or that of its fused module.
auto DownOf(const AdapterSizes& sizes, std::string_view projection) -> std::string;

/// Returns the adapter of the projection with this name; nothing if it has none.
auto AdapterOf(const AdapterSizes& sizes, std::string_view projection) -> std::optional<LowRank>;

}  // namespace shardc
