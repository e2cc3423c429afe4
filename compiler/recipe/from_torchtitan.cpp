// Each setting of torchtitan (config/job_config.py of v0.2.2, and its older names) becomes a line of a recipe with the
// same meaning, or a comment that says why it does not. A setting that the configuration leaves out has torchtitan's
// default.
#include "compiler/recipe/from_torchtitan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "compiler/base/printable.h"
#include "compiler/keys/toml_value.h"
#include "compiler/recipe/other_tools.h"
#include "compiler/recipe/text_guard.h"
#include "compiler/recipe/toml_tree.h"
#include "compiler/recipe/torchtitan_config.h"

namespace shardc {

namespace {

struct Flavor {
  std::string_view model;
  std::string_view flavor;
  std::string_view preset;
};

/// torchtitan's models that are presets. It scales the rotary frequencies of all its Llamas 3 as Llama 3.1 does. Its
/// first versions have Llama 2, by one of two names.
constexpr Flavor Flavors[] = {{"llama", "7B", "llama2-7b"},
                              {"llama", "13B", "llama2-13b"},
                              {"llama", "70B", "llama2-70b"},
                              {"llama2", "7B", "llama2-7b"},
                              {"llama2", "13B", "llama2-13b"},
                              {"llama2", "70B", "llama2-70b"},
                              {"llama3", "debugmodel", "llama-debug"},
                              {"llama3", "8B", "llama3.1-8b"},
                              {"llama3", "70B", "llama3.1-70b"},
                              {"llama3", "405B", "llama3.1-405b"},
                              {"qwen3", "debugmodel", "qwen3-debug"},
                              {"qwen3", "0.6B", "qwen3-0.6b"},
                              {"qwen3", "1.7B", "qwen3-1.7b"},
                              {"qwen3", "4B", "qwen3-4b"},
                              {"qwen3", "8B", "qwen3-8b"},
                              {"qwen3", "14B", "qwen3-14b"},
                              {"qwen3", "32B", "qwen3-32b"}};

/// torchtitan's models that a family computes if its sizes are given.
constexpr std::string_view WithFamily[] = {"llama", "llama2", "llama3", "qwen3"};
constexpr std::string_view WithExperts[] = {"deepseek_v3", "gpt_oss", "llama4"};

/// A setting that means the same here, whatever its value.
struct SameSetting {
  std::vector<std::string_view> theirs;
  std::string_view default_text;
  std::string_view section;
  std::string_view key;
};

/// The lines of a recipe, section by section.
class Lines {
 public:
  auto Add(std::string_view section, std::string_view key, std::string_view value, std::string_view comment = "")
      -> void {
    Section(section) += fmt::format("{} = {}{}{}\n", key, value, comment.empty() ? "" : "  # ", comment);
  }
  auto Say(std::string_view section, std::string_view comment) -> void {
    Section(section) += fmt::format("# {}\n", comment);
  }
  auto Text() const -> std::string {
    std::string text;
    for (const auto& [name, lines] : sections_) {
      text += fmt::format("\n[{}]\n{}", name, lines);
    }
    return text;
  }

 private:
  auto Section(std::string_view name) -> std::string& {
    const auto found = std::ranges::find(sections_, name, &std::pair<std::string, std::string>::first);
    return found != sections_.end() ? found->second : sections_.emplace_back(name, "").second;
  }

  std::vector<std::pair<std::string, std::string>> sections_;
};

/// Returns why there is no preset of a model, and what to do.
auto WithoutPreset(std::string_view model, std::string_view flavor) -> std::string_view {
  // "30B-A3B" of qwen3 has 3B parameters active.
  if (std::ranges::find(WithExperts, model) != std::end(WithExperts) || flavor.find("-A") != std::string_view::npos ||
      flavor.find("moe") != std::string_view::npos) {
    return HintOfKey("model", "experts");
  }
  return std::ranges::find(WithFamily, model) != std::end(WithFamily)
             ? "no preset has the sizes of this model; write family, layers, hidden, heads, ffn, vocab into [model]"
             : "no family here computes it; `shardc help model.family` lists the families";
}

auto AddModel(TorchtitanConfig& config, Lines& lines) -> void {
  const std::string model = config.TakeText({"model.name"}, "llama3");
  const std::string flavor = config.TakeText({"model.flavor"}, "debugmodel");
  const auto* const found =
      std::ranges::find_if(Flavors, [&](const Flavor& row) { return row.model == model && row.flavor == flavor; });
  if (found != std::end(Flavors)) {
    lines.Add("model", "preset", WriteToml(std::string(found->preset)), fmt::format("{} {} there", model, flavor));
    if (found->preset == "llama-debug") {
      lines.Add("model", "rope_frequency", "\"llama3_rope(8, 1, 4, 8192)\"",
                "torchtitan scales those of all its Llamas");
    }
  } else {
    const std::string_view why = WithoutPreset(model, flavor);
    config.Miss("model.flavor", why);
    lines.Say("model", PrintableLine(fmt::format("{} {} there: {}.", model, flavor, why)));
  }
}

auto AddMesh(TorchtitanConfig& config, Lines& lines) -> void {
  const std::string ranks = config.Take({"training.data_parallel_degree", "training.data_parallel_shard_degree",
                                         "parallelism.data_parallel_shard_degree"},
                                        "-1");
  if (ranks == "-1") {
    lines.Add("mesh", "dp", "8", "-1 there: all other ranks of the launch; write their number");
  } else {
    lines.Add("mesh", "dp", ranks);
  }
  const std::string reshard = config.TakeText({"parallelism.fsdp_reshard_after_forward"}, "default");
  // "torchtitan" keeps norm and head gathered after forward, which "always" there does not.
  lines.Add("shard", "units", reshard == "always" ? "\"block\"" : "\"torchtitan\"");
  lines.Add("shard", "reshard_after_forward", WriteToml(reshard != "never"));
}

auto AddPrecision(TorchtitanConfig& config, Lines& lines) -> void {
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

auto AddRecompute(TorchtitanConfig& config, Lines& lines) -> void {
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

/// Returns torchtitan's schedule (components/lr_scheduler.py) as an expression.
auto ScheduleOf(TorchtitanConfig& config, double steps) -> std::string {
  const std::string peak = config.Take({"optimizer.lr"}, "8e-4");
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

auto AddOptimizer(TorchtitanConfig& config, Lines& lines, double steps) -> void {
  const std::string name = config.TakeText({"optimizer.name"}, "AdamW");
  if (name != "AdamW") {
    config.Miss("optimizer.name", "it is AdamW here; `shardc help optimizer.name` lists the optimizers");
  }
  lines.Add("optimizer", "lr", WriteToml(ScheduleOf(config, steps)));
  lines.Add("optimizer", "betas",
            fmt::format("[{}, {}]", config.Take({"optimizer.beta1"}, "0.9"), config.Take({"optimizer.beta2"}, "0.95")));
}

auto AddData(TorchtitanConfig& config, Lines& lines) -> void {
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

auto AddCheckpoints(TorchtitanConfig& config, Lines& lines) -> void {
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

static const std::vector<SameSetting> SameSettings{
    {{"training.seq_len"}, "2048", "model", "seq"},
    {{"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"},
     "1",
     "mesh",
     "replicate"},
    {{"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree"}, "1", "mesh", "tp"},
    {{"optimizer.eps"}, "1e-8", "optimizer", "eps"},
    {{"optimizer.weight_decay"}, "0.1", "optimizer", "weight_decay"},
    {{"training.max_norm"}, "1.0", "optimizer", "clip_norm"},
    {{"training.batch_size", "training.local_batch_size"}, "8", "batch", "micro"},
    {{"training.steps"}, "10000", "train", "steps"},
    {{"metrics.log_freq"}, "10", "train", "log_every"},
};

/// Returns true if torchtitan has this setting: by the table, or because recipes spell it alike.
static auto IsOfTorchtitan(std::string_view section, std::string_view key) -> bool {
  constexpr auto OfOptimizer = std::to_array<std::string_view>({"name", "lr", "eps", "weight_decay"});
  return (section == "optimizer" && std::ranges::find(OfOptimizer, key) != OfOptimizer.end()) ||
         std::ranges::any_of(TorchtitanKeys(),
                             [&](const KeyElsewhere& row) { return row.section == section && row.key == key; });
}

/// Checks that torchtitan has more than half of the settings. Another trainer has a few of the same names.
static auto CheckIsOfTorchtitan(const std::string& name, const TomlNode& root) -> Status {
  int64_t num_known = 0;
  int64_t num_settings = 0;
  std::vector<std::string> others;
  for (const TomlEntry& section : root.entries) {
    const bool is_table = section.value.kind == TomlNode::Kind::Table;
    int64_t known_here = 0;
    for (const TomlEntry& entry : section.value.entries) {
      known_here += IsOfTorchtitan(section.key, entry.key) ? 1 : 0;
    }
    num_known += known_here;
    num_settings += is_table ? std::ssize(section.value.entries) : 1;
    if (known_here == 0) {
      others.push_back(PrintableLine(is_table ? "[" + section.key + "]" : section.key));
    }
  }
  FAIL_IF(num_known == 0, ExitCode::RecipeRejected, "{} has no key of torchtitan's configuration", name);
  FAIL_IF(
      2 * num_known <= num_settings, ExitCode::RecipeRejected,
      "{} is no configuration of torchtitan, which has {} of its {} settings{}; begin with `shardc new FILE --preset "
      "NAME`, where NAME is one of `shardc presets`",
      name, num_known, num_settings, others.empty() ? "" : fmt::format(", and nothing of {}", fmt::join(others, ", ")));
  return Success{};
}

/// Refuses what torchtitan has its configurations in from 0.3 on.
static auto CheckIsToml(const std::string& name, std::string_view text) -> Status {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  FAIL_IF(
      is_json || name.ends_with(".py"), ExitCode::RecipeRejected,
      "{} is {}; configurations of torchtitan are read in TOML, as versions before 0.3 have them. Begin with `shardc "
      "new FILE --preset NAME`; docs/coming_from_torchtitan.md says what each setting is here",
      name, is_json ? "JSON" : "Python");
  return Success{};
}

auto RecipeFromTorchtitan(const std::string& name, std::string text) -> ErrorOr<TorchtitanRecipe> {
  RETURN_IF_ERROR(CheckIsToml(name, text));
  SourceSet sources;
  const int16_t source = sources.Add(name, std::move(text));
  Diagnostics diagnostics(&sources);
  TomlFault fault;
  const auto root = CheckText(sources, source, diagnostics) ? ParseToml(sources, source, fault) : std::nullopt;
  FAIL_IF(!root, ExitCode::RecipeRejected, "{}: {}", name,
          diagnostics.has_errors() ? diagnostics.all().front().text
                                   : fmt::format("line {}: {}", fault.at.line, fault.message));
  RETURN_IF_ERROR(CheckIsOfTorchtitan(name, *root));
  TorchtitanConfig config(*root);
  Lines lines;
  AddModel(config, lines);
  AddMesh(config, lines);
  AddPrecision(config, lines);
  AddRecompute(config, lines);
  AddOptimizer(config, lines, config.TakeNumber({"training.steps"}, 10000));
  for (const SameSetting& same : SameSettings) {
    lines.Add(same.section, same.key, config.Take(same.theirs, same.default_text));
  }
  if (const std::string global = config.Take({"training.global_batch_size"}, "-1"); global != "-1") {
    lines.Add("batch", "global", global);
  }
  AddData(config, lines);
  AddCheckpoints(config, lines);

  TorchtitanRecipe recipe{.text = {}, .not_carried = config.NotCarried()};
  recipe.text = fmt::format(
      "# Made of {}, a configuration of torchtitan. Settings that it leaves out have torchtitan's defaults\n# "
      "(v0.2.2). "
      "This is a start: read each line. What it would cost: shardc plan --explain FILE.\n",
      PrintableLine(name));
  if (!recipe.not_carried.empty()) {
    recipe.text += fmt::format("#\n# Not carried over:\n#   {}\n", fmt::join(recipe.not_carried, "\n#   "));
  }
  recipe.text += lines.Text();
  return recipe;
}

}  // namespace shardc
