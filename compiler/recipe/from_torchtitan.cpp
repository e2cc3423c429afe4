// Each setting of torchtitan becomes a line of a recipe with the same meaning, or a comment that says why it does not:
// of its TOML (config/job_config.py of v0.2.2, and its older names), where a setting that is left out has torchtitan's
// default, and of the resolved configuration in JSON that later versions write, which leaves nothing out.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "compiler/base/text/parse_whole.h"
#include "compiler/keys/toml_value.h"
#include "compiler/recipe/config_lines.h"
#include "compiler/recipe/torchtitan_model.h"

namespace shardc {

namespace {

auto AddUnits(OtherConfig& config, RecipeLines& lines) -> void {
  const std::string reshard = config.TakeText({"parallelism.fsdp_reshard_after_forward"}, "default");
  // "torchtitan" keeps norm and head gathered after forward, which "always" there does not.
  lines.Add("shard", "units", reshard == "always" ? "\"block\"" : "\"torchtitan\"");
  lines.Add("shard", "reshard_after_forward", WriteToml(reshard != "never"));
}

auto AddPrecision(OtherConfig& config, RecipeLines& lines) -> void {
  const auto add = [&](std::string_view name, std::string_view default_text, std::string_view key) {
    const std::string type = config.TakeText({name}, default_text);
    if (type != "float32" && type != "bfloat16") {
      config.Miss(name, "types are float32 and bfloat16");
    }
    lines.Add("precision", key, type == "bfloat16" ? "\"bf16\"" : "\"fp32\"");
  };
  add("training.mixed_precision_param", "bfloat16", "compute");
  add("training.mixed_precision_reduce", "float32", "reduce");
  add("training.dtype", "float32", "master");
}

auto AddRecomputeOfToml(OtherConfig& config, RecipeLines& lines) -> void {
  const std::string mode = config.TakeText({"activation_checkpoint.mode"}, "selective");
  const std::string option = config.TakeText({"activation_checkpoint.selective_ac_option"}, "2");
  const int64_t every = std::strtoll(option.c_str(), nullptr, 10);
  if (mode == "selective" && option == "op") {
    lines.Add("recompute", "policy", "\"torchtitan-sac\"");
  } else if (mode == "full" || (mode == "selective" && every == 1)) {
    lines.Add("recompute", "policy", "\"full\"");
  } else if (mode == "selective" && every > 1) {
    lines.Add("recompute", "policy", "\"full\"");
    lines.Add("recompute", "layers", fmt::format("\"layer % {} == {}\"", every, every - 1),
              "blocks count from 1 there, from 0 here");
  } else {
    lines.Add("recompute", "policy", "\"none\"");
    if (mode != "none") {
      config.Miss("activation_checkpoint.mode",
                  "it is \"none\" here; `shardc help recompute.policy` lists the policies");
    }
  }
}

/// Adds [recompute]. The JSON does not name the class of activation checkpointing; the fields of the class do.
auto AddRecomputeOfJson(const TomlNode& root, OtherConfig& config, RecipeLines& lines) -> void {
  if (EntryOf(root, "activation_checkpoint") == nullptr) {
    lines.Add("recompute", "policy", "\"none\"");
  } else if (config.Has("activation_checkpoint.memory_budget")) {
    lines.Add("recompute", "policy", "\"none\"");
    config.Miss("activation_checkpoint.memory_budget",
                "it is \"none\" here; `shardc plan --fit` finds a policy that fits");
  } else if (config.Has("activation_checkpoint.force_recompute_mm_shapes_by_fqns")) {
    lines.Add("recompute", "policy", "\"torchtitan-sac\"");
    const std::string again = config.Take({"activation_checkpoint.force_recompute_mm_shapes_by_fqns"}, "[]");
    // No model without experts has this one, which is the default.
    if (again != "[]" && again != "[\"moe.router.gate\"]") {
      config.Miss("activation_checkpoint.force_recompute_mm_shapes_by_fqns",
                  "which products are computed again follows from the policy");
    }
  } else {
    lines.Add("recompute", "policy", "\"full\"");
  }
}

/// Returns torchtitan's schedule (components/lr_scheduler.py) as an expression.
auto ScheduleOf(OtherConfig& config, const std::string& peak, double steps) -> std::string {
  const double total = config.TakeNumber({"lr_scheduler.total_steps"}, steps);
  const double warmup = std::min(config.TakeNumber({"training.warmup_steps", "lr_scheduler.warmup_steps"}, 200), total);
  std::string type = config.TakeText({"lr_scheduler.decay_type"}, "linear");
  if (type != "linear" && type != "sqrt" && type != "cosine") {
    config.Miss("lr_scheduler.decay_type", "it is \"linear\" here; torchtitan has \"sqrt\" and \"cosine\" too");
    type = "linear";
  }
  const std::string least = config.Take({"lr_scheduler.lr_min", "lr_scheduler.min_lr_factor"}, "0");
  const std::string ratio = config.Take({"lr_scheduler.decay_ratio"}, "");
  if (ratio.empty() && total == steps && warmup < total && (type == "linear" || type == "cosine")) {
    return fmt::format("{} * warmup({}) * {}({}, {})", peak, warmup, type, warmup, least);
  }
  const double asked = ratio.empty() ? total - warmup : std::nearbyint(total * std::strtod(ratio.c_str(), nullptr));
  const double decay = std::min(asked, total - warmup);
  if (decay <= 0) {
    return fmt::format("{} * warmup({})", peak, warmup);
  }
  const std::string end = total == steps ? "steps" : fmt::format("{}", total);
  const std::string_view factor = type == "linear" ? "1 - done"
                                  : type == "sqrt" ? "1 - sqrt(done)"
                                                   : "0.5 * (1 + cos(pi * done))";
  return fmt::format("let done = clamp((step - ({} - {})) / {}, 0, 1) in {} * warmup({}) * ({} + (1 - {}) * ({}))", end,
                     decay, decay, peak, warmup, least, least, factor);
}

auto AddOptimizerOfToml(OtherConfig& config, RecipeLines& lines, double steps) -> void {
  const std::string name = config.TakeText({"optimizer.name"}, "AdamW");
  if (name != "AdamW") {
    config.Miss("optimizer.name", "it is AdamW here; `shardc help optimizer.name` lists the optimizers");
  }
  lines.Add("optimizer", "lr", WriteToml(ScheduleOf(config, config.Take({"optimizer.lr"}, "8e-4"), steps)));
  lines.Add("optimizer", "betas",
            fmt::format("[{}, {}]", config.Take({"optimizer.beta1"}, "0.9"), config.Take({"optimizer.beta2"}, "0.95")));
}

auto IsNumber(const TomlNode& node) -> bool {
  return node.kind == TomlNode::Kind::Int || node.kind == TomlNode::Kind::Real;
}

/// Adds [optimizer] from the first group of parameters, which has an optimizer and its numbers.
auto AddOptimizerOfJson(const TomlNode& root, OtherConfig& config, RecipeLines& lines, double steps) -> void {
  const TomlNode* const optimizer = EntryOf(root, "optimizer");
  const TomlNode* const groups = optimizer == nullptr ? nullptr : EntryOf(*optimizer, "param_groups");
  const TomlNode* const group = groups == nullptr || groups->items.empty() ? nullptr : &groups->items.front();
  const TomlNode* const numbers = group == nullptr ? nullptr : EntryOf(*group, "optimizer_kwargs");
  if (numbers == nullptr) {
    config.Refuse("optimizer.param_groups", "it has no learning rate");
    return;
  }
  config.Take({"optimizer.param_groups"}, "[]");
  if (groups->items.size() > 1) {
    config.Miss("optimizer.param_groups",
                "the first of its groups is that of all parameters here; write [[optimizer.group]] for others");
  }
  const TomlNode* const name = EntryOf(*group, "optimizer_name");
  if (name != nullptr && name->text != "AdamW") {
    config.Miss("optimizer.param_groups",
                fmt::format("{} is AdamW here; `shardc help optimizer.name` lists the optimizers", name->text));
  }
  const auto number = [&](std::string_view key, std::string_view usual) {
    const TomlNode* const node = EntryOf(*numbers, key);
    if (node == nullptr) {
      return std::string(usual);
    }
    const bool is_pair = usual.starts_with('[');
    if (is_pair ? node->items.size() != 2 || !std::ranges::all_of(node->items, IsNumber) : !IsNumber(*node)) {
      config.Refuse("optimizer.param_groups", fmt::format("{} is {}", key, TextOf(*node)));
    }
    return TextOf(*node);
  };
  lines.Add("optimizer", "lr", WriteToml(ScheduleOf(config, number("lr", "8e-4"), steps)));
  lines.Add("optimizer", "betas", number("betas", "[0.9, 0.95]"));
  lines.Add("optimizer", "eps", number("eps", "1e-8"));
  lines.Add("optimizer", "weight_decay", number("weight_decay", "0.1"));
}

auto AddDataOfJson(const TomlNode& root, OtherConfig& config, RecipeLines& lines) -> void {
  lines.Add(
      "data", "tokens", "[\"tokens.bin\"]",
      fmt::format("name files of ids, which tools/tokenize_text.py makes of text by a tokenizer such as that in {}",
                  config.TakeText({"hf_assets_path"}, "hf_assets_path")));
  const std::string order = config.Take({"dataloader.shuffle"}, "false");
  lines.Add("data", "order", order == "true" ? "\"shuffled\"" : "\"sequential\"");
  if (order == "true") {
    lines.Add("data", "seed", config.Take({"dataloader.seed"}, "0"));
  }
  const std::string every = config.Take({"validator.freq"}, "10");
  if (config.Take({"validator.enable"}, "false") == "true") {
    config.Miss("validator.enable",
                fmt::format("name files of ids in data.eval, and write train.eval_every = {}", every));
  }
  if (EntryOf(root, "debug") != nullptr && config.Has("debug.seed")) {
    lines.Add("init", "seed", config.Take({"debug.seed"}, "0"));
  }
}

/// Returns how many sequences so many tokens are. Adds a fault if the length does not divide them.
auto SequencesOf(OtherConfig& config, std::string_view name, int64_t length) -> int64_t {
  const int64_t tokens = config.TakeCount({name}, 0);
  if (tokens % length != 0) {
    config.Refuse(name, fmt::format("it is no multiple of {} tokens, the length of a sequence", length));
  }
  return std::max<int64_t>(tokens / length, 1);
}

/// The batch of a rank and that of a step, in sequences; 0 for a batch of a step that follows from the ranks.
struct Batch {
  int64_t micro = 1;
  int64_t global = 0;
};

auto BatchOf(OtherConfig& config) -> Batch {
  constexpr std::string_view MicroTokens = "training.num_tokens_per_microbatch_per_dp_rank";
  constexpr std::string_view StepTokens = "training.num_tokens_per_train_step";
  Batch batch;
  if (config.program() == ConfigProgram::TorchtitanJson && config.Has(MicroTokens)) {
    const int64_t length = config.TakeCount({"training.seq_len", "training.max_context_length"}, 0);
    batch.micro = SequencesOf(config, MicroTokens, length);
    if (config.Take({StepTokens}, "-1") != "-1") {
      batch.global = SequencesOf(config, StepTokens, length);
    }
    return batch;
  }
  batch.micro = config.program() == ConfigProgram::TorchtitanJson
                    ? config.TakeCount({"training.local_batch_size"}, 0)
                    : config.TakeCount({"training.batch_size", "training.local_batch_size"}, 8);
  if (config.Take({"training.global_batch_size"}, "-1") != "-1") {
    batch.global = config.TakeCount({"training.global_batch_size"}, 0);
  }
  return batch;
}

auto AddBatchAndRanks(OtherConfig& config, RecipeLines& lines) -> void {
  const Batch batch = BatchOf(config);
  lines.Add("batch", "micro", std::to_string(batch.micro));
  if (batch.global != 0) {
    lines.Add("batch", "global", std::to_string(batch.global));
  }
  const std::vector<std::string_view> names = {"training.data_parallel_degree", "training.data_parallel_shard_degree",
                                               "parallelism.data_parallel_shard_degree"};
  const int64_t ranks = ParseWhole<int64_t>(config.Take(names, "-1")).value_or(0);
  AddRanks(
      lines, ranks == -1 ? -1 : config.TakeCount(names, 1), batch.global, batch.micro,
      config.TakeCount({"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"}, 1));
}

auto AddDataOfToml(OtherConfig& config, RecipeLines& lines) -> void {
  const std::string dataset = config.TakeText({"training.dataset"}, "c4_test");
  lines.Add("data", "tokens", "[\"tokens.bin\"]",
            fmt::format("data set {} there; name files of ids, which tools/tokenize_text.py makes of text", dataset));
  lines.Add("data", "order", "\"sequential\"");
  const std::string every = config.Take({"validation.freq"}, "10");
  if (config.Take({"validation.enabled", "validation.enable"}, "false") == "true") {
    config.Miss("validation.enable",
                fmt::format("name files of ids in data.eval, and write train.eval_every = {}", every));
  }
  // Samples in the order of the data set need no seed.
  if (const std::string seed = config.Take({"training.seed", "debug.seed"}, ""); !seed.empty()) {
    lines.Add("init", "seed", seed);
  }
}

auto AddCheckpoints(OtherConfig& config, RecipeLines& lines) -> void {
  const std::string every = config.Take({"checkpoint.interval"}, "500");
  const std::string keep = config.Take({"checkpoint.keep_latest_k"}, "10");
  if (config.Take({"checkpoint.enable_checkpoint", "checkpoint.enable"}, "false") == "true") {
    lines.Add("checkpoint", "every", every);
    lines.Add("checkpoint", "keep", keep);
  } else {
    lines.Add("checkpoint", "every", "0", "none there; here the run saves at its end");
  }
}

}  // namespace

auto AddTorchtitan(const ConfigTree& tree, OtherConfig& config, RecipeLines& lines) -> void {
  constexpr std::string_view Steps = "training.steps";
  if (tree.is_json) {
    AddTorchtitanSpec(tree.root, config, lines);
    AddRecomputeOfJson(tree.root, config, lines);
    AddOptimizerOfJson(tree.root, config, lines, config.TakeNumber({Steps}, 10000));
  } else {
    AddTorchtitanFlavor(config, lines);
    AddRecomputeOfToml(config, lines);
    AddOptimizerOfToml(config, lines, config.TakeNumber({Steps}, 10000));
  }
  AddBatchAndRanks(config, lines);
  AddUnits(config, lines);
  AddPrecision(config, lines);
  AddCarried(config, lines);
  if (tree.is_json) {
    AddDataOfJson(tree.root, config, lines);
  } else {
    AddDataOfToml(config, lines);
  }
  AddCheckpoints(config, lines);
}

}  // namespace shardc
