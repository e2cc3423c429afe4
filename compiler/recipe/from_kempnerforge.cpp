// Each setting of KempnerForge (kempnerforge/config of 2026-06) becomes a line of a recipe with the same meaning, or a
// comment that says why it does not. A setting that the configuration leaves out has KempnerForge's default.
#include <algorithm>
#include <cstdlib>

#include "compiler/base/text/parse_whole.h"
#include "compiler/keys/toml_value.h"
#include "compiler/recipe/config_lines.h"
#include "compiler/recipe/other_tools.h"

namespace shardc {

/// Sections that make the model another one than its [model] says.
static constexpr std::string_view OfOtherModels[] = {"vision_encoder", "adapter", "vlm", "video"};

/// Returns the width of a feed-forward layer: two thirds of four times the width, times a factor, in steps of 256.
static auto WidthOf(double hidden, double factor) -> int64_t {
  constexpr int64_t Step = 256;
  const auto width = static_cast<int64_t>(std::min(4 * hidden * (2.0 / 3) * factor, 1e15));
  return (width + Step - 1) / Step * Step;
}

static auto AddModelOfForge(const TomlNode& root, OtherConfig& config, RecipeLines& lines) -> void {
  for (const std::string_view section : OfOtherModels) {
    if (EntryOf(root, section) != nullptr) {
      config.Refuse(section,
                    "models of images and videos are not offered; `shardc help model.family` lists the families");
    }
  }
  if (config.Take({"model.num_experts"}, "0") != "0") {
    config.Refuse("model.num_experts", HintOfKey("model", "experts"));
  }
  if (config.TakeText({"model.norm_type"}, "rmsnorm") != "rmsnorm") {
    config.Refuse("model.norm_type", "the families here have RMSNorm");
  }
  if (config.TakeText({"model.activation"}, "silu") != "silu") {
    config.Refuse("model.activation", "the families here have SwiGLU, which is \"silu\" there");
  }
  lines.Add("model", "family", config.Take({"model.qk_norm"}, "false") == "true" ? "\"qwen3\"" : "\"llama\"");
  const int64_t heads = config.TakeCount({"model.n_heads"}, 32);
  lines.Add("model", "kv_heads", std::to_string(config.TakeCount({"model.n_kv_heads"}, heads)));
  const double factor = config.TakeNumber({"model.ffn_dim_multiplier"}, 1);
  const int64_t width = WidthOf(static_cast<double>(config.TakeCount({"model.dim"}, 4096)), factor);
  lines.Add("model", "ffn", std::to_string(config.TakeCount({"model.ffn_hidden_dim"}, width)));
  lines.Add("init", "scheme", "\"gpt2\"");
}

static auto AddRecomputeOfForge(OtherConfig& config, RecipeLines& lines) -> void {
  const std::string mode = config.TakeText({"train.activation_checkpointing"}, "none");
  lines.Add("recompute", "policy", mode == "full" ? "\"full\"" : "\"none\"");
  if (mode == "selective") {
    config.Miss("train.activation_checkpointing",
                "it is \"none\" here; no policy computes attention alone again, and \"full\" does all of a block");
  }
}

static auto AddPrecisionOfForge(OtherConfig& config, RecipeLines& lines) -> void {
  const std::string type = config.TakeText({"train.mixed_precision"}, "bf16");
  if (type != "bf16" && type != "fp32") {
    config.Miss("train.mixed_precision", "it is bf16 here; types are fp32 and bf16");
  }
  lines.Add("precision", "compute", type == "fp32" ? "\"fp32\"" : "\"bf16\"");
  lines.Add("precision", "reduce", "\"fp32\"");
}

/// Returns KempnerForge's schedule (training/scheduler.py) as an expression; the first step has none of the rise.
static auto ScheduleOfForge(OtherConfig& config) -> std::string {
  const std::string peak = config.Take({"optimizer.lr"}, "3e-4");
  const std::string name = config.TakeText({"scheduler.name"}, "cosine");
  const double steps = config.TakeNumber({"train.max_steps"}, 100000);
  const double warmup = config.TakeNumber({"scheduler.warmup_steps"}, 2000);
  const std::string least = config.Take({"scheduler.min_lr_ratio"}, "0.1");
  const double stable = name == "wsd" ? config.TakeNumber({"scheduler.stable_steps"}, 0) : 0;
  const double decay = config.TakeNumber({"scheduler.decay_steps"}, steps - warmup - stable);
  const std::string cooldown = config.TakeText({"scheduler.wsd_decay_type"}, "cosine");
  const std::string alpha = config.Take({"scheduler.rex_alpha"}, "1.0");
  if (name == "none") {
    return peak;
  }
  const std::string rise = warmup > 0 ? fmt::format("{} * min(1, step / {})", peak, warmup) : peak;
  const std::string_view shape = name == "wsd" ? std::string_view(cooldown) : std::string_view(name);
  std::string fall;
  if (shape == "cosine") {
    fall = fmt::format("({0} + (1 - {0}) * 0.5 * (1 + cos(pi * done)))", least);
  } else if (shape == "linear") {
    fall = fmt::format("(1 - (1 - {}) * done)", least);
  } else if (shape == "sqrt") {
    fall = fmt::format("({0} + (1 - {0}) * sqrt(1 - done))", least);
  } else if (shape == "rex") {
    fall = fmt::format("max({}, (1 - done) ^ {})", least, alpha);
  } else if (shape != "constant") {
    config.Miss("scheduler.name", "the rate stays at its peak here; write optimizer.lr as an expression");
  }
  return fall.empty() || decay <= 0
             ? rise
             : fmt::format("let done = clamp((step - {}) / {}, 0, 1) in {} * {}", warmup + stable, decay, rise, fall);
}

static auto AddOptimizerOfForge(OtherConfig& config, RecipeLines& lines) -> void {
  if (config.TakeText({"optimizer.name"}, "adamw") != "adamw") {
    config.Miss("optimizer.name", "it is adamw here; `shardc help optimizer.name` lists the optimizers");
  }
  lines.Add("optimizer", "lr", WriteToml(ScheduleOfForge(config)));
  lines.Add("optimizer", "betas", config.Take({"optimizer.betas"}, "[0.9, 0.95]"));
}

static auto AddDataOfForge(OtherConfig& config, RecipeLines& lines) -> void {
  const std::string path = config.TakeText({"data.dataset_path"}, "");
  const std::string pattern = config.TakeText({"data.file_pattern"}, "*.npy");
  const std::string from = path.empty() ? "there are no files there" : fmt::format("{}/{} there", path, pattern);
  lines.Add("data", "tokens", "[\"tokens.bin\"]",
            fmt::format("{}; name files of ids, and their type in data.format", from));
  // The order of the samples follows from the seed, and not as there.
  lines.Add("data", "order", "\"shuffled\"");
  lines.Add("data", "seed", config.Take({"train.data_seed"}, config.Take({"train.seed"}, "42")));
  const std::string every = config.Take({"eval.interval"}, "1000");
  if (config.Take({"eval.enabled"}, "false") == "true") {
    config.Miss("eval.enabled", fmt::format("name files of ids in data.eval, and write train.eval_every = {}", every));
  }
}

auto AddKempnerForge(const ConfigTree& tree, OtherConfig& config, RecipeLines& lines) -> void {
  AddModelOfForge(tree.root, config, lines);
  const int64_t ranks = ParseWhole<int64_t>(config.Take({"distributed.dp_shard"}, "-1")).value_or(0);
  AddRanks(lines, ranks == -1 ? -1 : config.TakeCount({"distributed.dp_shard"}, 1), 0, 1, 1);
  AddCarried(config, lines);
  AddRecomputeOfForge(config, lines);
  AddPrecisionOfForge(config, lines);
  AddOptimizerOfForge(config, lines);
  AddDataOfForge(config, lines);
  // All are kept for 0, here and there.
  const int64_t keep = ParseWhole<int64_t>(config.Take({"checkpoint.keep_last_n"}, "3")).value_or(0);
  lines.Add("checkpoint", "keep", std::to_string(std::max<int64_t>(keep, 0)));
  lines.Add("checkpoint", "dir", WriteToml(config.TakeText({"checkpoint.dir"}, "checkpoints")));
}

}  // namespace shardc
