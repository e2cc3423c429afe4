// A flavor has a preset of the same sizes. A resolved configuration has all sizes, block by block; they are written
// out. Its blocks have to be alike, and to have nothing besides what a family computes.
#include "compiler/recipe/torchtitan_model.h"

#include <algorithm>
#include <set>

#include "compiler/base/printable.h"
#include "compiler/keys/toml_value.h"
#include "compiler/recipe/other_tools.h"

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
const std::set<std::string_view> OfMatrix = {"sharding_config", "in_features", "out_features", "bias", "param_init"};
constexpr std::string_view NoFamily = "no family here computes it; `shardc help model.family` lists the families";

auto HasFamily(std::string_view model) -> bool { return std::ranges::find(WithFamily, model) != std::end(WithFamily); }

/// Returns why there is no preset of a model, and what to do.
auto WithoutPreset(std::string_view model, std::string_view flavor) -> std::string_view {
  // "30B-A3B" of qwen3 has 3B parameters active.
  if (std::ranges::find(WithExperts, model) != std::end(WithExperts) || flavor.find("-A") != std::string_view::npos ||
      flavor.find("moe") != std::string_view::npos) {
    return HintOfKey("model", "experts");
  }
  return HasFamily(model)
             ? "no preset has the sizes of this model; write family, layers, hidden, heads, ffn, vocab into [model]"
             : NoFamily;
}

/// Reads the values of a tree that a path of keys leads to.
class Reader {
 public:
  Reader(const TomlNode& root, OtherConfig& config) : root_(root), config_(config) {}

  /// Returns the value at a path of keys; null if a key is missing.
  auto At(const TomlNode& from, std::initializer_list<std::string_view> path) const -> const TomlNode* {
    const TomlNode* node = &from;
    for (const std::string_view key : path) {
      node = node == nullptr ? nullptr : EntryOf(*node, key);
    }
    return node;
  }
  auto At(std::initializer_list<std::string_view> path) const -> const TomlNode* { return At(root_, path); }
  /// Returns a size. Adds a fault if it is missing, no whole number or below 1.
  auto Size(std::initializer_list<std::string_view> path) -> int64_t {
    const TomlNode* const node = At(path);
    if (node != nullptr && node->kind == TomlNode::Kind::Int && node->integer >= 1) {
      return node->integer;
    }
    Refuse(fmt::format("{} {}; it has to be a whole number of at least 1", fmt::join(path, "."),
                       node == nullptr ? "is missing" : "is " + TextOf(*node)));
    return 1;
  }
  auto Text(std::initializer_list<std::string_view> path, std::string_view otherwise) const -> std::string {
    const TomlNode* const node = At(path);
    return node == nullptr ? std::string(otherwise) : TextOf(*node);
  }
  auto Refuse(std::string_view why) -> void { config_.Refuse("model_spec.model", why); }
  /// Adds a fault for an entry of a table that has another name than these.
  auto KnowsAll(const TomlNode* table, std::string_view what, const std::set<std::string_view>& names) -> void {
    for (const TomlEntry& entry : table == nullptr ? std::vector<TomlEntry>() : table->entries) {
      if (!names.contains(entry.key)) {
        Refuse(fmt::format("its {} has `{}`, which no family here computes", what, entry.key));
      }
    }
  }

 private:
  const TomlNode& root_;
  OtherConfig& config_;
};

/// Returns the text of a block without what may depend on the block: the law of its initial values, and what code of
/// Python the attention calls.
auto BlockText(const TomlNode& node) -> std::string {
  if (node.kind != TomlNode::Kind::Table) {
    return TextOf(node);
  }
  std::string text = "{";
  for (const TomlEntry& entry : node.entries) {
    if (entry.key != "param_init" && entry.key != "inner_attention") {
      text += fmt::format("{} = {}, ", entry.key, BlockText(entry.value));
    }
  }
  return text + "}";
}

}  // namespace

auto AddTorchtitanFlavor(OtherConfig& config, RecipeLines& lines) -> void {
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

auto AddTorchtitanSpec(const TomlNode& root, OtherConfig& config, RecipeLines& lines) -> void {
  const auto text_of = [&](std::string_view key) {
    const TomlNode* const node = EntryOf(*EntryOf(root, "model_spec"), key);
    return node == nullptr || node->kind != TomlNode::Kind::Text ? std::string("?") : node->text;
  };
  const std::string model = text_of("name");
  const std::string flavor = text_of("flavor");
  const std::string name = fmt::format("{} {}", model, flavor);
  if (!HasFamily(model)) {
    config.Refuse("model_spec.name", WithoutPreset(model, flavor));
    return;
  }
  const TomlNode* const spec = EntryOf(*EntryOf(root, "model_spec"), "model");
  const TomlNode* const blocks = spec == nullptr ? nullptr : EntryOf(*spec, "layers");
  if (blocks == nullptr || blocks->items.empty()) {
    config.Refuse("model_spec.model", "it has no layers");
    return;
  }
  const TomlNode& block = blocks->items.front();
  Reader whole(*spec, config);
  Reader first(block, config);
  const std::string like = BlockText(block);
  if (!std::ranges::all_of(blocks->items, [&](const TomlNode& other) { return BlockText(other) == like; })) {
    whole.Refuse("its blocks differ; blocks of one model are alike here");
  }
  if (first.At({"moe"}) != nullptr) {
    whole.Refuse(HintOfKey("model", "experts"));
    return;
  }
  whole.KnowsAll(spec, "model",
                 {"sharding_config", "dim", "vocab_size", "lm_head", "tok_embeddings", "norm", "layers",
                  "enable_weight_tying", "param_init"});
  first.KnowsAll(&block, "block",
                 {"sharding_config", "attention", "feed_forward", "attention_norm", "ffn_norm", "param_init"});
  first.KnowsAll(first.At({"attention"}), "attention",
                 {"sharding_config", "n_heads", "n_kv_heads", "head_dim", "dim", "inner_attention", "qkv_linear", "wo",
                  "qk_norm", "rope", "param_init", "mask_type"});
  first.KnowsAll(first.At({"feed_forward"}), "feed-forward layer", {"sharding_config", "w1", "w2", "w3", "param_init"});
  // Adapters and quantized matrices have numbers of their own.
  for (const std::string_view matrix : {"w1", "w2", "w3"}) {
    first.KnowsAll(first.At({"feed_forward", matrix}), matrix, OfMatrix);
  }
  for (const std::string_view matrix : {"wqkv", "wq", "wkv"}) {
    first.KnowsAll(first.At({"attention", "qkv_linear", matrix}), matrix, OfMatrix);
  }
  first.KnowsAll(first.At({"attention", "wo"}), "wo", OfMatrix);

  const bool has_norms = first.At({"attention", "qk_norm"}) != nullptr;
  const bool has_fused = first.At({"attention", "qkv_linear", "wqkv"}) != nullptr;
  const bool has_biases = first.Text({"attention", "qkv_linear", has_fused ? "wqkv" : "wq", "bias"}, "false") == "true";
  const int64_t hidden = whole.Size({"tok_embeddings", "embedding_dim"});
  const int64_t heads = first.Size({"attention", "n_heads"});
  const int64_t head_dim = first.Size({"attention", "rope", "dim"});
  const std::string_view family = has_norms ? "qwen3" : has_biases ? "qwen2" : "llama";
  lines.Say("model", PrintableLine(name + " there."));
  lines.Add("model", "family", WriteToml(std::string(family)));
  lines.Add("model", "layers", std::to_string(blocks->items.size()));
  lines.Add("model", "hidden", std::to_string(hidden));
  lines.Add("model", "heads", std::to_string(heads));
  lines.Add("model", "kv_heads",
            std::to_string(first.At({"attention", "n_kv_heads"}) == nullptr ? heads
                                                                            : first.Size({"attention", "n_kv_heads"})));
  if (head_dim * heads != hidden) {
    lines.Add("model", "head_dim", std::to_string(head_dim));
  }
  lines.Add("model", "ffn", std::to_string(first.Size({"feed_forward", "w1", "out_features"})));
  lines.Add("model", "vocab", std::to_string(whole.Size({"tok_embeddings", "num_embeddings"})));
  lines.Add("model", "norm_eps", whole.Text({"norm", "eps"}, "1e-5"));
  const bool is_tied = whole.Text({"enable_weight_tying"}, "false") == "true";
  lines.Add("model", "tied", WriteToml(is_tied));
  lines.Add("model", "rope_theta", first.Text({"attention", "rope", "theta"}, "10000"));
  const std::string scaling = first.Text({"attention", "rope", "scaling"}, "\"none\"");
  if (scaling == "\"llama\"") {
    const auto factor = [&](std::string_view key, std::string_view usual) {
      return first.Text({"attention", "rope", key}, usual);
    };
    lines.Add("model", "rope_frequency",
              WriteToml(fmt::format("llama3_rope({}, {}, {}, {})", factor("scaling_factor", "8"),
                                    factor("low_freq_factor", "1"), factor("high_freq_factor", "4"),
                                    factor("original_max_position_embeddings", "8192"))));
  } else if (scaling != "\"none\"") {
    whole.Refuse(fmt::format("its rotary frequencies are scaled by {}; `none` and `llama` are read", scaling));
  }
  // As the presets: embeddings of deviation 1 make logits of sqrt(hidden) in a model that is tied.
  lines.Add("init", "scheme", is_tied || family != "llama" ? "\"normal\"" : "\"torchtitan-llama\"");
}

}  // namespace shardc
