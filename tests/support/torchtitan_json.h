// The resolved configuration of a small or a large Llama or Qwen3, as torchtitan writes it in JSON.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace shardc {

/// Which names a configuration has for lengths and batches: those of 0.3.0, or those of its sources of 2026-08.
enum class Dialect : uint8_t { Sequences, Tokens };

/// The values that the published configuration of Llama 3 8B has, with a block of other sizes for other models.
struct TorchtitanModel {
  std::string name = "llama3";
  std::string flavor = "8B";
  int layers = 32;
  int hidden = 4096;
  int heads = 32;
  int kv_heads = 8;
  int head_dim = 128;
  int ffn = 14336;
  int vocab = 128256;
  bool has_head_norms = false;
  bool is_tied = false;
};

inline auto TorchtitanJson(Dialect dialect, const TorchtitanModel& own = {}) -> nlohmann::json {
  using nlohmann::json;
  const bool has_tokens = dialect == Dialect::Tokens;
  const auto linear = [](int in, int out) {
    return json{{"param_init", {{"weight", "functools.partial(<function trunc_normal_>, std=0.02)"}}},
                {"sharding_config", nullptr},
                {"in_features", in},
                {"out_features", out},
                {"bias", false}};
  };
  const auto norm = [](int size) {
    return json{{"normalized_shape", size}, {"eps", 1e-5}, {"elementwise_affine", true}};
  };
  json rope = {{"dim", own.head_dim},    {"theta", 500000},
               {"scaling", "llama"},     {"scaling_factor", 8.0},
               {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0},
               {"rope_factor", 1.0},     {"original_max_position_embeddings", 8192}};
  rope[has_tokens ? "max_context_length" : "max_seq_len"] = 131072;
  const int width = (own.heads + 2 * own.kv_heads) * own.head_dim;
  const json block = {
      {"sharding_config", nullptr},
      {"attention",
       {{"n_heads", own.heads},
        {"n_kv_heads", own.kv_heads},
        {"head_dim", nullptr},
        {"dim", own.hidden},
        {"inner_attention", {{"kernel_options", json::object()}}},
        {"qkv_linear", {{"head_dim", own.head_dim}, {"wqkv", linear(own.hidden, width)}}},
        {"wo", linear(own.heads * own.head_dim, own.hidden)},
        {"qk_norm", own.has_head_norms ? norm(own.head_dim) : json()},
        {"rope", rope}}},
      {"feed_forward",
       {{"w1", linear(own.hidden, own.ffn)}, {"w2", linear(own.ffn, own.hidden)}, {"w3", linear(own.hidden, own.ffn)}}},
      {"moe", nullptr},
      {"attention_norm", norm(own.hidden)},
      {"ffn_norm", norm(own.hidden)}};
  json training = {{"max_norm", 1.0},
                   {"steps", 1000},
                   {"enable_cpu_offload", false},
                   {"disable_cuda_graphs", false},
                   {"dtype", "float32"},
                   {"mixed_precision_param", "bfloat16"},
                   {"mixed_precision_reduce", "float32"},
                   {"gc_freq", 50},
                   {"gc_debug", false}};
  training[has_tokens ? "max_context_length" : "seq_len"] = 8192;
  training[has_tokens ? "num_tokens_per_microbatch_per_dp_rank" : "local_batch_size"] = has_tokens ? 2 * 8192 : 2;
  training[has_tokens ? "num_tokens_per_train_step" : "global_batch_size"] = has_tokens ? 64 * 8192 : 64;
  return {{"model_spec",
           {{"name", own.name},
            {"flavor", own.flavor},
            {"model",
             {{"dim", own.hidden},
              {"vocab_size", own.vocab},
              {"lm_head", linear(own.hidden, own.vocab)},
              {"tok_embeddings", {{"num_embeddings", own.vocab}, {"embedding_dim", own.hidden}}},
              {"norm", norm(own.hidden)},
              {"layers", json(static_cast<size_t>(own.layers), block)},
              {"enable_weight_tying", own.is_tied}}}}},
          {"hf_assets_path", "./assets/hf/Llama-3.1-8B"},
          {"dump_folder", "./outputs"},
          {"tokenizer", json::object()},
          {"dataloader", {{"num_workers", 0}}},
          {"training", training},
          {"parallelism",
           {{"data_parallel_replicate_degree", 1},
            {"data_parallel_shard_degree", -1},
            {"fsdp_reshard_after_forward", "default"},
            {"tensor_parallel_degree", 1},
            {"pipeline_parallel_degree", 1},
            {"pipeline_parallel_schedule", "1F1B"},
            {"pipeline_parallel_first_stage_less_layers", 1}}},
          {"optimizer",
           {{"param_groups",
             {{{"pattern", ".*"},
               {"optimizer_name", "AdamW"},
               {"optimizer_kwargs", {{"lr", 3e-4}, {"betas", {0.9, 0.95}}, {"eps", 1e-8}, {"weight_decay", 0.1}}}}}},
            {"implementation", "fused"}}},
          {"lr_scheduler",
           {{"warmup_steps", 200},
            {"total_steps", nullptr},
            {"decay_ratio", nullptr},
            {"decay_type", "linear"},
            {"min_lr_factor", 0.0}}},
          {"checkpoint", {{"enable", true}, {"interval", 500}, {"keep_latest_k", 10}, {"async_mode", "disabled"}}},
          {"activation_checkpoint",
           {{"preserve_rng_state", true}, {"force_recompute_mm_shapes_by_fqns", {"moe.router.gate"}}}},
          {"compile", {{"enable", false}, {"backend", "inductor"}}},
          {"metrics", {{"log_freq", 10}, {"enable_wandb", false}}},
          {"loss", {{"num_chunks", 8}, {"loss_fn", {{"global_vocab_size", own.vocab}}}}},
          {"debug", {{"seed", nullptr}, {"save_config_file", "config.json"}}}};
}

}  // namespace shardc
